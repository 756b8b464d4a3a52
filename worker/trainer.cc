#include "worker/trainer.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "common/left_out_step.h"
#include "common/os/aligned_buffer.h"
#include "common/os/flush_denormals.h"
#include "worker/microbatch.h"
#include "worker/step_graphs.h"

namespace syncopate::worker {
namespace {

// Takes the time since it was last asked.
class Lap {
 public:
  explicit Lap(const Clock& clock) : clock_(clock), last_(clock.now()) {}

  Duration split() {
    const TimePoint before = std::exchange(last_, clock_.now());
    return last_ - before;
  }

 private:
  const Clock& clock_;
  TimePoint last_;
};

// Tells the tracer, if there is one, that a step is under way, and records it.
class TracedStep {
 public:
  TracedStep(Tracer* tracer, std::int64_t step)
      : tracer_(begin(tracer, step)), span_(tracer, {.kind = TraceKind::kStep, .number = step}) {}
  ~TracedStep() {
    span_.end();
    if (tracer_ != nullptr) tracer_->end_step();
  }
  TracedStep(const TracedStep&) = delete;
  TracedStep& operator=(const TracedStep&) = delete;

 private:
  static Tracer* begin(Tracer* tracer, std::int64_t step) {
    if (tracer != nullptr) tracer->begin_step(step);
    return tracer;
  }

  Tracer* const tracer_;
  TraceSpan span_;
};

// A step whose work has been given to the backend. On a device it may not be done yet.
struct GivenStep {
  StepRecord record;  // what is known before its end
  StepContext context;
  Duration straggled_forward{}, straggled_backward{};
  LossAndCorrect learnt = {};  // in several passes
  // What its loss is of.
  double weight = 1;
  double labels = 0;
  bool is_regression = false;
};

// One run of the loop: what is the same in every step, and where it stands.
class Training {
 public:
  Training(const TrainerOptions& options, const TrainerHooks& hooks, const TrainerParts& parts, Work& work,
           const ParamArenas& arenas, const std::vector<Range>& buckets)
      : options_(options),
        hooks_(hooks),
        parts_(parts),
        work_(work),
        arenas_(arenas),
        buckets_(buckets),
        progress_(parts.model.layout(), buckets),
        health_(options.health, parts.model.layout()),
        tensor_ready_([this](std::size_t tensor) { take_gradient(tensor); }),
        graphs_(parts.device != nullptr ? std::optional<StepGraphs>(*parts.device) : std::nullopt),
        settle_([this] { return settled_ = settled_.ok() ? settle_all() : settled_; }),
        step_(parts.strategy.first_step()),
        step_end_(parts.clock.now()),
        core_wait_(parts.core_wait ? parts.core_wait() : Duration::zero()) {
    given_.reserve(kStepsUnderWay);
    parts.model.before_reading([this](Range range) { wait_for_weights(range); });
  }
  ~Training() { parts_.model.before_reading(nullptr); }

  Status run_epochs() {
    std::optional<std::int64_t> under_way;  // epoch
    while (true) {
      SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<std::int64_t> position, work_.next(step_));
      if (!position) return settle_all();
      position_ = *position;
      const std::int64_t epoch = global_batch() / options_.steps_per_epoch;
      if (!under_way || epoch > *under_way) {
        under_way = epoch;
        SYNCOPATE_RETURN_IF_ERROR(settle_all());
        SYNCOPATE_ASSIGN_OR_RETURN(const bool wanted, hooks_.next_epoch ? hooks_.next_epoch(epoch) : true);
        if (!wanted) return {};
      }
      SYNCOPATE_RETURN_IF_ERROR(run_step(epoch));
      ++step_;
      job_steps_ = std::max(job_steps_, global_batch() + 1);
      if (hooks_.step_done) SYNCOPATE_RETURN_IF_ERROR(hooks_.step_done(step_, settle_));
      SYNCOPATE_RETURN_IF_ERROR(settled_);
      if (hooks_.evaluation_due && job_steps_ < options_.total_steps) SYNCOPATE_RETURN_IF_ERROR(hand_out());
    }
  }

  // Does nothing for a model without local state.
  Status tell_local_state(bool final) {
    if (!hooks_.local_state || parts_.model.local_state().empty()) return {};
    const std::span<const float> state = parts_.backend.host_view(parts_.model.local_state());
    SYNCOPATE_RETURN_IF_ERROR(parts_.backend.status());
    hooks_.local_state(final, state);
    return {};
  }

  std::int64_t step() const { return step_; }

 private:
  std::int64_t global_batch() const { return position_ / options_.workers; }
  int batch_size() const { return parts_.model.batch_size() * options_.microbatches; }  // of a step

  // What is to be evaluated now, if anything.
  Status hand_out() {
    const EvaluationShare due = hooks_.evaluation_due(job_steps_);
    if (due.state || due.weights) SYNCOPATE_RETURN_IF_ERROR(settle_all());
    if (due.state) SYNCOPATE_RETURN_IF_ERROR(tell_local_state(false));
    if (due.state) SYNCOPATE_RETURN_IF_ERROR(parts_.strategy.gather_weights(due.weights));
    if (!due.weights || !hooks_.snapshot) return {};
    const std::span<const float> agreed = parts_.strategy.job_weights().values;
    if (!agreed.empty()) return hooks_.snapshot(job_steps_, agreed);
    SYNCOPATE_RETURN_IF_ERROR(parts_.strategy.weights_needed({0, arenas_.weights.size()}));
    const std::span<const float> weights = parts_.backend.host_view(arenas_.weights);
    SYNCOPATE_RETURN_IF_ERROR(parts_.backend.status());
    return hooks_.snapshot(job_steps_, weights);
  }

  // Inside backward: the gradient of this tensor is final.
  void take_gradient(std::size_t tensor) {
    if (plants_nan_ && tensor == parts_.model.layout().tables().size()) plant_nan(tensor);
    health_.tensor_ready(tensor, arenas_.gradients);
    if (!health_.holds_back()) hand_over(tensor);
  }

  void hand_over(std::size_t tensor) {
    progress_.tensor_ready(tensor, [this](std::size_t bucket) {
      straggle("backward");
      parts_.strategy.gradient_ready(bucket);
    });
  }

  void plant_nan(std::size_t tensor) {
    const Range range = parts_.model.layout().tensors()[tensor].range;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    parts_.backend.upload({&nan, 1}, arenas_.model_gradients().subspan(range.begin + range.size() / 2, 1));
  }

  // Looks at the whole gradient, and hands over what was held back of it, if that is to be.
  Status judge_gradient(const BatchView& batch, bool has_loss) {
    if (!health_.reads_gradients()) return {};
    const auto found = health_.found(has_loss ? parts_.model.loss().loss : 0.0, arenas_, batch);
    if (found && hooks_.not_finite) SYNCOPATE_RETURN_IF_ERROR(hooks_.not_finite(*found));
    if (!health_.skips()) return {};
    for (std::size_t bucket = 0; found && bucket < buckets_.size(); ++bucket) {
      mark_left_out(slice(arenas_.gradients, buckets_[bucket]));
    }
    hand_over(0);
    return {};
  }

  Status run_step(std::int64_t epoch) {
    GivenStep given;
    StepRecord& record = given.record;
    record.step = step_;
    record.epoch = epoch;
    record.position = position_;
    const TracedStep traced_step(parts_.tracer, step_);
    SYNCOPATE_RETURN_IF_ERROR(settle_beyond(steps_ahead()));
    Lap lap(parts_.clock);
    TraceSpan phase(parts_.tracer, {.kind = TraceKind::kData, .number = step_});

    parts_.activity.set("waiting for data", step_);
    const BatchView batch = parts_.batches.next();
    SYNCOPATE_RETURN_IF_ERROR(parts_.batches.status());
    record.samples = parts_.model.has_loss() ? batch_size() - batch.empty_places : 0;
    given.weight = batch.weight;
    given.labels = static_cast<double>(batch.labels.size());
    given.is_regression = !batch.targets.empty();
    record.data = lap.split();
    phase.next(TraceKind::kForward);

    parts_.activity.set("forward", step_);
    if (parts_.straggling != nullptr) parts_.straggling->begin_step(step_);
    given.context = {step_, learning_rate(), parts_.model.touched_rows(batch), epoch};
    parts_.backend.begin_turn(turn_of(step_));
    parts_.strategy.begin_step(given.context);
    health_.begin_step(given.context);
    plants_nan_ = hooks_.plants_nan && hooks_.plants_nan();
    begin(Phase::kForward);
    const auto give = [&] { return compute(batch, given, lap, phase); };
    SYNCOPATE_RETURN_IF_ERROR(is_captured() ? graphs_->launch(step_, batch, give) : give());
    record.backward += lap.split();
    SYNCOPATE_RETURN_IF_ERROR(parts_.backend.status());
    parts_.strategy.step_given();
    if (parts_.core_wait && parts_.backend.phase_timer() == nullptr) {
      record.compute_core_wait = parts_.core_wait() - core_wait_;
    }
    if (parts_.straggling != nullptr && parts_.straggling->interrupted()) {
      return Status::cancelled("told to stop");
    }

    phase.next(TraceKind::kSynchronise);
    parts_.activity.set("synchronising", step_);
    if (!parts_.strategy.runs_ahead()) {
      const Result<SyncStats> stats = parts_.strategy.finish_step();
      SYNCOPATE_RETURN_IF_ERROR(parts_.backend.status());
      if (!stats.ok()) return stats.status();
      record.sync = *stats;
    }
    if (PhaseTimer* const timer = parts_.backend.phase_timer()) timer->end_step();
    given_.push_back(std::move(given));
    return settle_beyond(steps_ahead());
  }

  // What this thread has waited for a core since the last step. A device's times have no part in it.
  void take_core_wait(StepRecord& record) {
    if (!parts_.core_wait) return;
    const Duration before = std::exchange(core_wait_, parts_.core_wait());
    record.core_wait = core_wait_ - before;
  }

  // Computes the gradients of a batch and hands them over.
  Status compute(const BatchView& batch, GivenStep& given, Lap& lap, TraceSpan& phase) {
    const int passes = options_.microbatches;
    for (int pass = 0; pass < passes; ++pass) {
      if (pass > 0) {
        phase.next(TraceKind::kForward);
        parts_.activity.set("forward", step_);
      }
      const BatchView part = microbatch_of(batch, batch_size(), pass, passes);
      SYNCOPATE_RETURN_IF_ERROR(pass_through(part, given, lap, phase));
      if (passes == 1) break;
      const LossAndCorrect learnt = parts_.model.loss();
      given.learnt.loss += learnt.loss;
      given.learnt.correct += learnt.correct;
    }
    begin(Phase::kSynchronise);
    parts_.strategy.gradients_complete();
    return {};
  }

  Status pass_through(const BatchView& batch, GivenStep& given, Lap& lap, TraceSpan& phase) {
    StepRecord& record = given.record;
    if (parts_.straggling != nullptr) parts_.straggling->begin_pass(cost_of(batch));
    const Duration before = straggled();
    in_backward_ = false;
    parts_.model.forward(arenas_.model_weights(), batch);
    SYNCOPATE_RETURN_IF_ERROR(weights_);
    straggle("forward");
    const Duration in_forward = straggled() - before;
    given.straggled_forward += in_forward;
    record.forward += lap.split() - in_forward;
    phase.next(TraceKind::kBackward);

    parts_.activity.set("backward", step_);
    begin(Phase::kBackward);
    progress_.begin();
    in_backward_ = true;
    parts_.model.backward(arenas_.model_weights(), arenas_.model_gradients(), tensor_ready_);
    SYNCOPATE_RETURN_IF_ERROR(weights_);
    SYNCOPATE_RETURN_IF_ERROR(judge_gradient(batch, record.samples > 0));
    straggle("backward");
    record.straggle = straggled();
    const Duration in_backward = record.straggle - before - in_forward;
    given.straggled_backward += in_backward;
    record.backward += lap.split() - in_backward;
    return {};
  }

  // Whether this step's work is launched as a graph: what the host does in its midst would be left out.
  bool is_captured() const { return graphs_ && steps_ahead() > 0 && !plants_nan_; }

  // How many steps may be given and not done when the next one begins. None where each is looked at by itself.
  std::size_t steps_ahead() const {
    const bool is_traced = parts_.tracer != nullptr && parts_.tracer->in_step();
    const bool runs_ahead = parts_.strategy.runs_ahead() && parts_.straggling == nullptr && !is_traced;
    return runs_ahead ? kStepsUnderWay - 1 : 0;
  }

  Status settle_all() { return settle_beyond(0); }
  Status settle_beyond(std::size_t left) {
    while (given_.size() > left) {
      SYNCOPATE_RETURN_IF_ERROR(settle(given_.front()));
      given_.erase(given_.begin());
    }
    return {};
  }

  // Waits for the end of the oldest step that was given, and records it.
  Status settle(GivenStep& given) {
    StepRecord& record = given.record;
    const std::size_t turn = turn_of(record.step);
    if (parts_.strategy.runs_ahead()) {
      parts_.activity.set("synchronising", record.step);
      const Result<SyncStats> stats = parts_.strategy.finish_step();
      SYNCOPATE_RETURN_IF_ERROR(parts_.backend.status());
      if (!stats.ok()) return stats.status();
      record.sync = *stats;
    }
    record.forward -= record.sync.forward_wait;
    record.backward -= record.sync.backward_wait;
    const Duration in_waits = std::exchange(record.sync.pass_core_wait, {});  // in no record: of real threads alone
    if (parts_.core_wait) record.compute_core_wait -= std::min(record.compute_core_wait, in_waits);
    SYNCOPATE_RETURN_IF_ERROR(record_learning(given, turn));
    SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<DeviceTimes> device, device_times(turn));
    if (device) {
      record.launch = record.forward + record.backward;
      // The device stood idle during the waits.
      record.forward = std::max(Duration::zero(), device->forward - given.straggled_forward);
      record.backward = std::max(Duration::zero(), device->backward - given.straggled_backward);
      // A batch that is waited for while the device works costs no time.
      if (device->idle) record.data = std::min(record.data, *device->idle);
    } else {
      take_core_wait(record);
    }
    record.end = parts_.clock.now();
    record.total = record.end - std::exchange(step_end_, record.end);
    // When the host sees a step's end says little of one step where it runs ahead.
    if (device && device->whole) record.total = *device->whole;
    parts_.records.add(record);
    return {};
  }

  // The model's loss is the mean over the batch's places, times its weight; the record's is that over its samples.
  Status record_learning(GivenStep& given, std::size_t turn) {
    StepRecord& record = given.record;
    if (record.samples == 0) return {};
    const LossAndCorrect learnt = options_.microbatches > 1 ? given.learnt : parts_.model.loss(turn);
    const double full = static_cast<double>(record.samples) / batch_size();
    record.loss = learnt.loss / (given.weight * full);
    if (given.is_regression) {
      record.accuracy = std::numeric_limits<double>::quiet_NaN();  // regression has none
    } else if (given.labels > 0) {
      record.accuracy = static_cast<double>(learnt.correct) / (full * given.labels);
    }
    if (health_.reads_gradients() || !hooks_.not_finite) return {};
    const auto found = health_.found_in_loss(given.context, record.loss, record.sync);
    return found ? hooks_.not_finite(*found) : Status();
  }

  void begin(Phase phase) {
    if (PhaseTimer* const timer = parts_.backend.phase_timer()) timer->begin(phase);
  }
  // Returns nothing on the CPU.
  Result<std::optional<DeviceTimes>> device_times(std::size_t turn) {
    PhaseTimer* const timer = parts_.backend.phase_timer();
    return timer != nullptr ? timer->times(turn) : std::optional<DeviceTimes>();
  }

  // Inside a pass: the first failure is kept for after it.
  void wait_for_weights(Range range) {
    if (!weights_.ok()) return;
    const TimePoint begin = parts_.clock.now();
    weights_ = in_backward_ ? parts_.strategy.weights_needed_again(range) : parts_.strategy.weights_needed(range);
    if (parts_.straggling != nullptr) parts_.straggling->leave_out(parts_.clock.now() - begin);
  }

  // Makes a worker that is to be slow take as long for what it has computed so far as it would there.
  void straggle(const char* operation) {
    if (parts_.straggling == nullptr) return;
    parts_.backend.finish();
    const TraceSpan span(parts_.tracer, {.kind = TraceKind::kStraggle, .number = step_});
    parts_.activity.set("straggling", step_);
    const Duration before = parts_.core_wait ? parts_.core_wait() : Duration::zero();
    parts_.straggling->catch_up();
    // Waking from a delay late belongs to the delay, which counts it, and not to what was computed.
    if (parts_.core_wait) core_wait_ += parts_.core_wait() - before;
    parts_.activity.set(operation, step_);
  }
  Duration straggled() const { return parts_.straggling == nullptr ? Duration{} : parts_.straggling->waited(); }

  double learning_rate() const {
    if (hooks_.learning_rate) return hooks_.learning_rate();
    const LearningRateContext context{options_.base_learning_rate, options_.minibatch_growth, options_.steps_per_epoch,
                                      options_.total_steps};
    return learning_rate_at(options_.schedule, context, global_batch());
  }

  const TrainerOptions& options_;
  const TrainerHooks& hooks_;
  const TrainerParts& parts_;
  Work& work_;
  ParamArenas arenas_;
  const std::vector<Range> buckets_;
  BackwardProgress progress_;
  HealthCheck health_;
  bool plants_nan_ = false;  // in this step's gradient
  std::function<void(std::size_t)> tensor_ready_;
  std::optional<StepGraphs> graphs_;
  const std::function<Status()> settle_;  // for step_done
  Status settled_;                        // what it has come to
  std::vector<GivenStep> given_;          // not recorded yet, the oldest first
  std::int64_t step_;                     // of this worker
  std::int64_t position_ = 0;             // in the job
  std::int64_t job_steps_ = 0;            // of the job, that have been begun and are done as far as this worker knows
  TimePoint step_end_;                    // of the last step
  Duration core_wait_{};                  // until then, and in the delays since
  bool in_backward_ = false;
  Status weights_;  // of those that the passes have asked for
};

}  // namespace

Status train(const TrainerOptions& options, const TrainerHooks& hooks, const TrainerParts& parts,
             const std::function<Status(std::span<const float>)>& final_weights) {
  const FlushDenormals flush;
  parts.activity.set("joining", 0);
  SYNCOPATE_ASSIGN_OR_RETURN(const ParamArenas arenas, parts.strategy.allocate(parts.model.layout()));
  if (options.restored != nullptr) {
    Resumable* const resumable = parts.strategy.resumable();
    if (resumable == nullptr) return Status::invalid_argument("this strategy cannot go on from a saved state");
    SYNCOPATE_RETURN_IF_ERROR(resumable->restore(*options.restored));
  } else if (options.chief) {
    AlignedBuffer initial(arenas.weights.size());
    parts.model.initialize(options.seed, initial.span());
    for (const Range& own : parts.model.params()) {
      parts.backend.upload(slice(initial.span(), own), slice(arenas.weights, own));
    }
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<Range> buckets, parts.strategy.join());
  if (!arenas.loss_scale.empty()) parts.backend.scale_gradients_by(arenas.loss_scale);
  Quota quota(parts.batches, options.workers, options.total_steps);
  Work& work = parts.work != nullptr ? *parts.work : quota;
  SYNCOPATE_RETURN_IF_ERROR(work.begin(parts.strategy.first_step()));
  if (hooks.joined) hooks.joined(parts.strategy.first_step());

  Training training(options, hooks, parts, work, arenas, buckets);
  SYNCOPATE_RETURN_IF_ERROR(training.run_epochs());
  SYNCOPATE_RETURN_IF_ERROR(training.tell_local_state(true));

  parts.activity.set("leaving", training.step());
  SYNCOPATE_RETURN_IF_ERROR(parts.strategy.gather_weights(options.chief));
  if (hooks.leaving) SYNCOPATE_RETURN_IF_ERROR(hooks.leaving());
  SYNCOPATE_RETURN_IF_ERROR(parts.strategy.leave());
  const std::span<const float> weights = parts.backend.host_view(arenas.weights);
  SYNCOPATE_RETURN_IF_ERROR(parts.backend.status());
  return final_weights ? final_weights(weights) : Status();
}

}  // namespace syncopate::worker
