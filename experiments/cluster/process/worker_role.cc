#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "common/os/core_wait.h"
#include "common/os/exhaustion.h"
#include "common/pause.h"
#include "common/text/log.h"
#include "experiments/checkpoint/checkpoint.h"
#include "experiments/checkpoint/checkpoint_cutter.h"
#include "experiments/checkpoint/checkpoint_keeper.h"
#include "experiments/checkpoint/run_facts.h"
#include "experiments/cluster/process/batch_order_of.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/cluster/process/fitting_batch.h"
#include "experiments/cluster/process/health_reporter.h"
#include "experiments/cluster/process/membership_loop.h"
#include "experiments/cluster/process/replica_group.h"
#include "experiments/cluster/process/roles.h"
#include "experiments/cluster/process/shared_work.h"
#include "experiments/cluster/process/snapshot_sender.h"
#include "experiments/config/evaluation_points.h"
#include "experiments/config/rules/rate_rule.h"
#include "experiments/config/rules/survival_rules.h"
#include "worker/data/batch_loader.h"
#include "worker/staged_batches.h"
#include "worker/trainer.h"
#include "worker/work.h"

namespace syncopate::experiments {
namespace {

// Where a worker computes: on a GPU, or, without a device, on the CPU.
struct Place {
  std::unique_ptr<Device> device;
  std::unique_ptr<worker::ComputeBackend> backend;
  std::size_t libraries_memory = 0;  // of the device, before there is a model; in bytes
};

Result<Place> place_of(const RoleContext& context) {
  Place place;
  if (context.config.device != DeviceKind::kCuda) {
    place.backend = backend_of(context.config);
    return place;
  }
  if (context.accelerator == nullptr) {
    return Status::internal("a worker on a GPU was started with the program for the CPU");
  }
  SYNCOPATE_ASSIGN_OR_RETURN(place.device, context.accelerator->open_device(context.gpu));
  SYNCOPATE_ASSIGN_OR_RETURN(place.backend, context.accelerator->make_backend(*place.device, context.config.precision));
  place.libraries_memory = place.device->memory().allocated;
  return place;
}

// A worker through all membership epochs of a run. It keeps data, model and device, and connects to the others anew.
class Worker {
 public:
  explicit Worker(const RoleContext& context)
      : context_(context), config_(context.config), clock_(context.host.clock()), health_(context) {}

  // Reads the data and builds the model before joining, so that other workers wait no longer than necessary.
  Status prepare() { return with_advice(get_ready()); }
  // Trains in one membership epoch after the other, until training is over or no other follows.
  Status run();

 private:
  Status get_ready();
  Status build_model();
  // Returns the status, which says which batch would fit if the device had no room for this one.
  Status with_advice(Status status);
  Status train_in(const MembershipEpoch& membership);
  Status train_with(ReplicaGroup& replicas, const MembershipEpoch& membership);
  worker::TrainerHooks hooks(ReplicaGroup& replicas, const MembershipEpoch& membership, Pause& pause);
  worker::BatchSource& batches() { return staged_ ? static_cast<worker::BatchSource&>(*staged_) : *loader_; }
  SharedWork::Queue queue();
  Status prepare_checkpoints();
  Status stage_batches();
  // Goes back to this worker's state in a checkpoint.
  Status restore(const std::string& checkpoint);
  // Adds this worker's part of a checkpoint to `state`. Call it between steps.
  Status take(SyncStrategy& strategy, Share share, TrainingState& state);
  // Announces a step at which a fault is due, which is injected before the step begins and once the ones before it are
  // settled.
  Status announce(std::int64_t step, const std::function<Status()>& settle);
  Status hand_in(SyncStrategy& strategy, std::span<const float> weights);
  // Keeps the state from which the next membership epoch goes on, as far as this worker has it.
  void carry_on(SyncStrategy& strategy);
  // Whether this is the lowest worker of those that have the same part of the model.
  bool is_first_of_part(const MembershipEpoch& membership) const {
    return divides_model(config_) ? model_place(config_, context_.rank).replica == 0
                                  : context_.rank == membership.workers.front();
  }
  // The layout of the run's model, of which this worker's may be a part.
  const ParamLayout& whole_layout() const {
    return part_.layers != nullptr ? part_.layers->split().whole() : model_->layout();
  }
  TimePoint deadline() const { return clock_.now() + from_seconds(config_.timeout_seconds); }
  void tell(const MembershipEpoch& membership, const char* name, const std::string& value);
  std::int64_t total_steps() const { return total_steps_of(config_, order_.steps_per_epoch()); }
  // Returns how many points of evaluation there are up to here.
  std::int64_t points_passed(std::int64_t steps_done) const {
    return points_->passed(static_cast<double>(steps_done), clock_.now() - training_began_);
  }
  std::int64_t job_steps_at(std::int64_t first, const SyncStrategy& strategy) const;
  worker::EvaluationShare evaluation_due(std::int64_t steps_done, const SyncStrategy& strategy);

  const RoleContext& context_;
  const ResolvedRun& config_;
  const Clock& clock_;
  std::shared_ptr<const worker::DatasetPair> data_;
  worker::BatchOrder order_;
  Place place_;
  std::unique_ptr<worker::Model> model_;
  ModelPart part_;            // model_, where it is a part of the run's
  std::vector<double> rows_;  // by table, those that a step touches; empty unless exchanges are chosen by them
  std::unique_ptr<worker::BatchLoader> loader_;
  std::unique_ptr<worker::StagedBatches> staged_;  // set on a device
  std::optional<SharedWork> shared_work_;          // set if workers share the job's batches
  std::optional<SnapshotSender> sender_;
  std::optional<TrainingState> carried_;
  std::optional<StateForms> forms_;         // of checkpoints
  std::optional<CheckpointCutter> cutter_;  // set if the run writes any
  Subscription checkpoint_orders_;          // while it trains; after the cutter, which it uses
  std::optional<std::int64_t> first_step_;  // first step of this membership epoch, until it has been announced
  std::optional<EvaluationPoints> points_;
  std::int64_t points_passed_ = 0;
  bool trains_to_the_end_ = true;  // until the end of the job
  HealthReporter health_;
  bool plants_nan_ = false;  // in the next step's gradient
  TimePoint training_began_{};
  WeightsSnapshot stamp_;
};

Status Worker::with_advice(Status status) {
  if (status.code() != Code::kResourceExhausted || !place_.device) return status;
  const DeviceMemory memory = place_.device->memory();
  // What others on the same GPU would take then is not known.
  if (!memory.was_refused || config_.share_gpu) return status;
  const Result<TrainingMemory> wanted = training_memory(config_, data_->train->form());
  if (!wanted.ok()) return status;
  return Status(status.code(), fmt::format("{}; {}", status.message(),
                                           fitting_batch(*wanted, config_, memory, place_.libraries_memory)));
}

Status Worker::get_ready() {
  SYNCOPATE_ASSIGN_OR_RETURN(data_, context_.host.open_data(config_));
  order_ = batch_order_of(config_, data_->train->size(), context_.rank);
  SYNCOPATE_RETURN_IF_ERROR(worker::check_fills_a_batch(order_));
  if (shards_by_label(config_)) {
    SYNCOPATE_ASSIGN_OR_RETURN(order_.parts, worker::parts_by_label(*data_->train, config_.workers));
  }
  points_.emplace(config_.evaluate_every, config_.target_accuracy > 0,
                  JobLength{.steps_per_epoch = order_.steps_per_epoch(), .total_steps = total_steps()});
  context_.activity.set("opening the device", 0);
  SYNCOPATE_ASSIGN_OR_RETURN(place_, place_of(context_));
  context_.activity.set("building the model", 0);
  SYNCOPATE_RETURN_IF_ERROR(build_model());
  if (chooses_exchanges(config_)) rows_ = rows_a_step(*model_, *data_->train);
  loader_ = std::make_unique<worker::BatchLoader>(*data_->train, order_, config_.prefetch, shares_work(config_),
                                                  context_.host.threads());
  sender_.emplace(*model_, *data_->test, context_.control);
  SYNCOPATE_RETURN_IF_ERROR(prepare_checkpoints());
  if (place_.device) SYNCOPATE_RETURN_IF_ERROR(stage_batches());
  if (shares_work(config_)) shared_work_.emplace(queue(), batches(), clock_, context_.activity);
  return Status();
}

Status Worker::build_model() {
  const worker::SampleForm& form = data_->train->form();
  if (!divides_model(config_)) {
    SYNCOPATE_ASSIGN_OR_RETURN(model_, context_.host.make_model(config_, form, *place_.backend));
    return {};
  }
  SYNCOPATE_ASSIGN_OR_RETURN(OwnedPart owned, context_.host.make_part(config_, context_.rank, form, *place_.backend));
  model_ = std::move(owned.model);
  part_ = owned.part;
  if (part_.stage != nullptr) part_.stage->end_after(total_steps());
  return {};
}

Status Worker::stage_batches() {
  if (shares_work(config_)) loader_->order(0);  // to learn the form of a batch
  SYNCOPATE_ASSIGN_OR_RETURN(
      staged_, worker::StagedBatches::create(*loader_, *place_.device, clock_, from_seconds(config_.timeout_seconds),
                                             shares_work(config_)));
  return Status();
}

SharedWork::Queue Worker::queue() {
  return {
      .request = [this](const ControlClient::BatchRequest& request) { context_.control.request_batches(request); },
      .take =
          [this](bool wait) { return context_.control.take_batches(wait ? std::optional(deadline()) : std::nullopt); }};
}

Status Worker::prepare_checkpoints() {
  forms_.emplace(whole_layout(), model_->local_layout());
  const std::string& folder = context_.control.checkpoints();
  if (folder.empty()) return Status();
  SYNCOPATE_RETURN_IF_ERROR(check_shared(folder, context_.run_id));
  const std::string writer = worker_writer(context_.rank);
  cutter_.emplace(CutterOptions{.folder = folder,
                                .writer = writer,
                                .worker = context_.rank,
                                .interval = *config_.checkpoint_every,
                                .together = moves_together(config_),
                                .last_step = total_steps(),
                                .patience = from_seconds(config_.timeout_seconds / 4),
                                .digests = context_.control.checkpoint_terms().digests},
                  *forms_, context_.host.threads(), [this, writer](const CheckpointReport& report) {
                    context_.control.report_checkpoint(writer, report);
                  });
  return Status();
}

Status Worker::restore(const std::string& folder) {
  context_.activity.set("reading a checkpoint", stamp_.steps_done);
  SYNCOPATE_ASSIGN_OR_RETURN(
      const Checkpoint checkpoint,
      Checkpoint::open(folder, {.digest = context_.control.checkpoint_terms().digest_of(folder)}));
  carried_.emplace();
  CheckpointSelection selection{.worker = context_.rank,
                                .alone = has_servers_alone(config_) || averages_weights(config_)};
  // Servers read their own, and who has which is chosen later.
  if (has_servers(config_) && !chooses_exchanges(config_)) selection.row = [](std::size_t, RowKey) { return false; };
  SYNCOPATE_RETURN_IF_ERROR(checkpoint.read(*forms_, selection, *carried_));
  const std::string name = state_part::local_state_of(context_.rank);
  const std::span<float> local_state = model_->local_state();
  if (local_state.empty() || carried_->pieces(name).empty()) return Status();
  std::vector<float> values(local_state.size());
  SYNCOPATE_RETURN_IF_ERROR(carried_->read(name, {0, values.size()}, values));
  place_.backend->upload(values, local_state);
  return place_.backend->status();
}

Status Worker::take(SyncStrategy& strategy, Share share, TrainingState& state) {
  if (share != Share::kOwnOnly || has_state_of_its_own(config_)) {
    SYNCOPATE_RETURN_IF_ERROR(strategy.weights_needed({0, model_->layout().size()}));
    Resumable* const resumable = strategy.resumable();
    if (resumable == nullptr) return Status::invalid_argument("this strategy cannot be saved");
    SYNCOPATE_RETURN_IF_ERROR(resumable->save(state));
  }
  if (model_->local_state().empty()) return Status();
  const std::span<const float> local_state = place_.backend->host_view(model_->local_state());
  SYNCOPATE_RETURN_IF_ERROR(place_.backend->status());
  state.put(state_part::local_state_of(context_.rank), 0, local_state);
  return Status();
}

Status Worker::run() {
  return take_part_in_memberships(
      context_, clock_, [this] { context_.activity.set("waiting for the others", stamp_.steps_done); },
      [this](const MembershipEpoch& membership) { return train_in(membership); });
}

Status Worker::train_in(const MembershipEpoch& membership) {
  if (context_.tracer != nullptr) context_.tracer->begin_membership(membership.number);
  context_.activity.set("connecting", stamp_.steps_done);
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<ReplicaGroup> connected,
                             ReplicaGroup::connect(context_, membership, place_.device.get(), clock_, part_, rows_));
  ReplicaGroup& replicas = *connected;
  if (!membership.restore.empty()) {
    SYNCOPATE_RETURN_IF_ERROR(restore(membership.restore));
    if (shared_work_) shared_work_->go_back();
  }
  // This is done while others still load their data.
  if (context_.rank == 0) SYNCOPATE_RETURN_IF_ERROR(sender_->prepare());
  const Status status = with_advice(train_with(replicas, membership));
  // After a failure such as lack of memory there is no state to carry on.
  if (recovery_of(config_).may_go_on_after(status.code())) carry_on(replicas.strategy());
  // By now the library has reported which collective it uses.
  if (const std::string collective = replicas.description(); !collective.empty()) {
    tell(membership, "collective", collective);
  }
  if (!replicas.wire().empty()) tell(membership, "wire", replicas.wire());
  context_.control.count_dropped(replicas.dropped());
  // The reason is reported first, since the destructor of a hanging device or library may block.
  if (!status.ok() && status.code() != Code::kCancelled && !recovery_of(config_).regroups()) {
    context_.control.failed(status);
  }
  return status;
}

Status Worker::train_with(ReplicaGroup& replicas, const MembershipEpoch& membership) {
  Pause pause(context_.host.threads());
  std::optional<worker::Straggling> straggling;
  if (is_slowed(config_, context_.rank)) {
    straggling.emplace(straggling_of(config_, context_.rank), clock_,
                       [&](Duration duration) { return pause.wait(duration); });
  }
  Subscription heartbeat;
  if (sums_among_workers(config_) && part_.is_whole()) {
    heartbeat = context_.control.on_heartbeat([&] { return replicas.collective_state(); });
  }
  const auto interrupt = [&] {
    replicas.interrupt();
    pause.interrupt();
  };
  Subscription stop = context_.control.on_stop(interrupt);
  Subscription regroup = context_.control.on_regroup(interrupt);
  const worker::TrainerOptions options{.chief = membership.begins && is_first_of_part(membership),
                                       .seed = config_.seed,
                                       .total_steps = total_steps(),
                                       .steps_per_epoch = order_.steps_per_epoch(),
                                       .schedule = config_.lr_schedule,
                                       .base_learning_rate = config_.learning_rate,
                                       .minibatch_growth = static_cast<double>(batches_an_update(config_)),
                                       .workers = config_.workers,
                                       .microbatches = part_.stage != nullptr ? 1 : microbatches_of(config_),
                                       .restored = carried_ && goes_on(membership) ? &*carried_ : nullptr,
                                       .health = health_.options()};
  std::optional<worker::UntilUpdated> until_updated;
  worker::Work* work = context_.host.own_training();
  if (shared_work_) work = &*shared_work_;
  if (const int needed = batches_a_step(config_); needed < config_.workers) {
    work = &until_updated.emplace(batches(), replicas.strategy(), needed, total_steps() * config_.workers);
  }
  const std::optional<CoreWait> core_wait = context_.host.computes_here() ? CoreWait::of_this_thread() : std::nullopt;
  const worker::TrainerParts parts{
      .backend = *place_.backend,
      .model = *model_,
      .batches = batches(),
      .strategy = replicas.strategy(),
      .records = context_.control,
      .clock = clock_,
      .activity = context_.activity,
      .straggling = straggling ? &*straggling : nullptr,
      .core_wait = core_wait ? [&] { return core_wait->total(); } : std::function<Duration()>(),
      .work = work,
      .tracer = context_.tracer,
      .device = captures_steps(config_) ? place_.device.get() : nullptr};
  log_info("membership {}: training {} with {} parameters for {} steps of {} samples", membership.number,
           model_->name(), model_->layout().parameter_count(), options.total_steps, config_.batch_size);
  if (place_.device) {
    tell(membership, "device", place_.device->description());
    tell(membership, "libraries", context_.accelerator->libraries());
  }
  // Exceptions end here, too: until then others may call back into objects of this function.
  const Status status = caught([&] {
    return worker::train(options, hooks(replicas, membership, pause), parts,
                         [&, &strategy = replicas.strategy()](std::span<const float> weights) {
                           const bool has_parts = part_.layers != nullptr;
                           return hand_in(strategy, has_parts ? strategy.job_weights().values : weights);
                         });
  });
  // What follows takes its time, and is not to be interrupted.
  for (Subscription* const subscription : {&stop, &regroup, &heartbeat, &checkpoint_orders_}) subscription->reset();
  if (cutter_ && status.ok()) {
    context_.activity.rest("finishing a checkpoint", options.total_steps);
    cutter_->finish();
  }
  return status;
}

worker::TrainerHooks Worker::hooks(ReplicaGroup& replicas, const MembershipEpoch& membership, Pause& pause) {
  worker::TrainerHooks hooks;
  const std::optional<Share> share =
      share_of_worker(config_, !model_->local_layout().tensors().empty(), is_first_of_part(membership));
  const bool takes_checkpoints = cutter_ && share;
  hooks.joined = [this, number = membership.number, share, takes_checkpoints](std::int64_t first_step) {
    first_step_ = first_step;
    if (!takes_checkpoints) return;
    cutter_->begin(number, first_step, share);
    checkpoint_orders_ = context_.control.on_checkpoint_order(
        [this](std::int64_t of, std::int64_t step) { cutter_->on_order(of, step); });
  };
  hooks.step_done = [this, &strategy = replicas.strategy(), &pause, share, takes_checkpoints](
                        std::int64_t steps_done, const std::function<Status()>& settle) -> Status {
    stamp_.steps_done = steps_done;
    if (takes_checkpoints) {
      cutter_->step_done(steps_done, [&](TrainingState& state) -> Status {
        SYNCOPATE_RETURN_IF_ERROR(settle());
        return take(strategy, *share, state);
      });
    }
    // The last worker of a group waits for nobody: no wait would tell it that another comes back.
    if (!pause.wait(Duration::zero())) return Status::cancelled("interrupted between two steps");
    return announce(steps_done, settle);
  };
  hooks.next_epoch = [this, &strategy = replicas.strategy()](std::int64_t epoch) -> Result<bool> {
    context_.activity.set("waiting for the next epoch", stamp_.steps_done);
    const Result<ControlClient::EpochDecision> decision = context_.control.ask_epoch(epoch, deadline());
    if (!decision.ok()) return decision.status();
    if (const auto first = std::exchange(first_step_, {}); first && decision->go_on) {
      training_began_ = clock_.now() - decision->elapsed;
      points_passed_ = points_passed(job_steps_at(*first, strategy));
      SYNCOPATE_RETURN_IF_ERROR(announce(*first, [] { return Status(); }));
    }
    trains_to_the_end_ = decision->go_on;
    return decision->go_on;
  };
  hooks.not_finite = [this, &pause](const worker::NotFinite& what) { return health_.report(what, pause); };
  if (!config_.faults.empty()) hooks.plants_nan = [this] { return std::exchange(plants_nan_, false); };
  if (const OwnTraining* const own = context_.host.own_training()) {
    hooks.learning_rate = [own] { return own->learning_rate(); };
  }
  hooks.leaving = [this] { return context_.control.ask_leave(deadline()); };
  hooks.evaluation_due = [this, &strategy = replicas.strategy()](std::int64_t steps_done) {
    stamp_.steps_done = steps_done;
    return evaluation_due(steps_done, strategy);
  };
  hooks.local_state = [this](bool final, std::span<const float> state) {
    std::vector<float> counted;
    if (part_.stage != nullptr) {
      // The mean over all workers is to be that over the workers of each layer's stage: others have zeros there.
      counted.assign(state.begin(), state.end());
      for (float& value : counted) value *= static_cast<float>(config_.pipeline);
    }
    context_.control.send_local_state(final ? kFinalPoint : points_passed_, counted.empty() ? state : counted);
  };
  hooks.snapshot = [this, &strategy = replicas.strategy()](std::int64_t steps_done, std::span<const float> weights) {
    stamp_ = {.point = points_passed_, .steps_done = steps_done, .taken = clock_.now(), .final = false, .weights = {}};
    return sender_->send(stamp_, weights, strategy);
  };
  return hooks;
}

// Returns the steps of the job that are done when this worker goes on with its step `first`.
std::int64_t Worker::job_steps_at(std::int64_t first, const SyncStrategy& strategy) const {
  if (shared_work_) return shared_work_->position() / config_.workers;
  const int needed = batches_a_step(config_);
  return needed < config_.workers ? strategy.updates().value_or(0) * needed / config_.workers : first;
}

// A point that is passed between two averagings is assigned to the next one.
worker::EvaluationShare Worker::evaluation_due(std::int64_t steps_done, const SyncStrategy& strategy) {
  const std::int64_t passed = points_passed(steps_done);
  if (passed <= points_passed_ || !strategy.job_weights().are_there) return {};
  points_passed_ = passed;
  return {.state = true, .weights = context_.control.wants_snapshots()};
}

Status Worker::announce(std::int64_t step, const std::function<Status()>& settle) {
  if (!std::ranges::binary_search(context_.control.announced_steps(), step)) return {};
  SYNCOPATE_RETURN_IF_ERROR(settle());
  context_.activity.set("beginning a step", step);
  SYNCOPATE_ASSIGN_OR_RETURN(plants_nan_, context_.control.announce_step(step, deadline()));
  return {};
}

Status Worker::hand_in(SyncStrategy& strategy, std::span<const float> weights) {
  context_.activity.set("handing in", stamp_.steps_done);
  stamp_.final = true;
  stamp_.point = kFinalPoint;
  if (trains_to_the_end_) stamp_.steps_done = total_steps();
  stamp_.taken = clock_.now();
  const Result<bool> wanted = context_.control.ask_finish(deadline());
  return wanted.ok() && *wanted ? sender_->send(stamp_, weights, strategy) : Status();
}

void Worker::carry_on(SyncStrategy& strategy) {
  Resumable* const resumable = strategy.resumable();
  if (resumable == nullptr) return;
  TrainingState state;
  const Status saved = resumable->save(state);
  if (saved.ok()) {
    carried_ = std::move(state);
  } else {
    log_debug("nothing is carried on: {}", saved.message());
  }
}

void Worker::tell(const MembershipEpoch& membership, const char* name, const std::string& value) {
  log_info("{}: {}", name, value);
  if (context_.rank == membership.workers.front()) context_.control.tell(name, value);
}

}  // namespace

Status run_worker(const RoleContext& context) {
  Worker worker(context);
  SYNCOPATE_RETURN_IF_ERROR(worker.prepare());
  return worker.run();
}

}  // namespace syncopate::experiments
