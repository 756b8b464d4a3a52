#include "allreduce/strategy/sharded_strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "allreduce/collective/communication_thread.h"
#include "allreduce/collective/shared_words.h"
#include "allreduce/strategy/agreement.h"
#include "allreduce/strategy/asked_ranges.h"
#include "allreduce/strategy/sharded_bucket.h"
#include "allreduce/strategy/shared_rates.h"
#include "common/exposed_wait.h"
#include "common/os/release_pages.h"

namespace syncopate::allreduce {
namespace {

// Under ShardingStage::kGradients: buckets whose gradients are there as a whole at once, besides the one that backward
// writes to. Where the wire is slower than backward, that waits for it, as the step's end would otherwise.
constexpr std::size_t kBucketsUnderWay = 2;

class ShardedStrategy final : public SyncStrategy, public Resumable {
 public:
  ShardedStrategy(Collective& collective, const ShardedOptions& options, const Clock& clock)
      : collective_(collective), options_(options), clock_(clock), thread_(*options.threads) {
    assert(!is_layerwise(options.optimizer.kind));
    if (options.on_demand.asks == nullptr) return;
    exchange_.emplace(options.on_demand,
                      OnDemandExchange::Options{.timeout = options.timeout, .threads = options.threads}, clock);
  }

  Resumable* resumable() override { return this; }

  Result<ParamArenas> allocate(const ParamLayout& layout) override {
    SYNCOPATE_RETURN_IF_ERROR(refuse_tables(layout));
    layout_ = layout;
    SYNCOPATE_ASSIGN_OR_RETURN(gradients_, collective_.allocate(layout.size()));
    if (shards(ShardingStage::kGradients)) release_pages(std::as_writable_bytes(gradients_));
    SYNCOPATE_ASSIGN_OR_RETURN(weights_, collective_.allocate(layout.size()));
    if (options_.agrees_on_rates) {
      SYNCOPATE_ASSIGN_OR_RETURN(rates_memory_, collective_.allocate(SharedRates::floats(collective_.size())));
      rates_ = SharedRates(rates_memory_, collective_.rank(), collective_.size());
    }
    ranges_ = buckets_in_backward_order(layout, options_.bucket_bytes);
    for (const Range& range : ranges_) {
      const Range part = collective_.own_part(range.size());
      const Range own{range.begin + part.begin, range.begin + part.end};
      buckets_.push_back({.range = range,
                          .own = own,
                          .optimizer = Optimizer(options_.optimizer, layout, own),
                          .state = OptimizerState(options_.optimizer, own.size()),
                          .sum = AlignedBuffer(options_.passes > 1 && !exchange_ ? own.size() : 0)});
    }
    return ParamArenas{weights_, gradients_};
  }

  Status restore(const TrainingState& state) override {
    SYNCOPATE_RETURN_IF_ERROR(state.read(state_part::kWeights, {0, weights_.size()}, weights_));
    for (ShardedBucket& bucket : buckets_) {
      SYNCOPATE_RETURN_IF_ERROR(
          bucket.state.restore({0, bucket.own.size()}, bucket.own.begin, state).in("what the optimizer remembers"));
    }
    if (shards(ShardingStage::kWeights)) keep_own_weights();
    restored_ = true;
    steps_done_ = state.step;
    return Status();
  }

  Result<std::vector<Range>> join() override {
    SYNCOPATE_RETURN_IF_ERROR(watched({.name = "all_reduce", .stage = Stage::kJoining}, [&] { return agree(); }));
    for (std::size_t number = 0; !restored_ && number < buckets_.size(); ++number) {
      SYNCOPATE_RETURN_IF_ERROR(share_initial_weights(number));
    }
    if (exchange_) SYNCOPATE_RETURN_IF_ERROR(begin_exchange());
    is_whole_ = true;
    return ranges_;
  }

  std::int64_t first_step() const override { return steps_done_; }

  void begin_step(const StepContext& step) override {
    if (shards(ShardingStage::kWeights)) keep_own_weights();
    asked_.begin_step();
    step_ = step;
    rates_.say(step.learning_rate);
    is_whole_ = false;
    submitted_ = 0;
    pass_ = 0;
  }

  Status weights_needed(Range range) override {
    if (is_whole_) return take_weights(range);  // between steps
    return counted(&SyncStats::forward_wait, [&] { return take_weights(range); });
  }
  Status weights_needed_again(Range range) override {
    return counted(&SyncStats::backward_wait, [&] {
      if (pass_ > 0) wait_for_sums(range);
      return take_weights(range);
    });
  }

  void gradient_ready(std::size_t bucket) override {
    const bool another_pass_follows = bucket + 1 == buckets_.size() && pass_ + 1 < options_.passes;
    if (options_.overlap || another_pass_follows) submit_up_to(bucket);
    if (options_.overlap && shards(ShardingStage::kGradients) && bucket >= kBucketsUnderWay) {
      counted(&SyncStats::backward_wait, [&] {
        thread_.wait_for(buckets_[bucket - kBucketsUnderWay].summing, Duration::zero());
        return Status();
      });
    }
    if (!another_pass_follows) return;
    ++pass_;
    submitted_ = 0;
  }

  Result<SyncStats> finish_step() override {
    submit_up_to(buckets_.size() - 1);
    for (std::size_t number = 0; number < buckets_.size(); ++number) {
      SYNCOPATE_RETURN_IF_ERROR(
          counted(nullptr, [&] { return await(number, buckets_[number].summing, buckets_[number].summed); }));
      if (number == 0) SYNCOPATE_RETURN_IF_ERROR(rates_.check());
      if (exchange_) continue;
      const TimePoint begin = clock_.now();
      apply(number);
      stats_.optimizer += clock_.now() - begin;
    }
    if (exchange_)
      SYNCOPATE_RETURN_IF_ERROR(counted(nullptr, [&] { return meet(); }).in(fmt::format("step {}", step_.step)));
    is_whole_ = true;
    steps_done_ = step_.step + 1;
    if (!shards(ShardingStage::kWeights)) {
      // In the order in which forward needs them.
      for (std::size_t number = buckets_.size(); number-- > 0;) gather(number);
      if (!gathers_beside_forward()) {
        SYNCOPATE_RETURN_IF_ERROR(counted(nullptr, [&] { return take_gathered({0, weights_.size()}); }));
      }
    }
    return std::exchange(stats_, {});
  }

  Status gather_weights(bool wanted) override {
    if (!shards(ShardingStage::kWeights)) return take_gathered({0, weights_.size()});
    keep_own_weights();
    if (exchange_ && !wanted) return {};  // others need nothing of this worker but answers
    for (std::size_t number = 0; number < buckets_.size(); ++number) {
      gather(number);
      SYNCOPATE_RETURN_IF_ERROR(await(number, buckets_[number].gathering, buckets_[number].gathered));
      if (!wanted) keep_own_weights(buckets_[number]);
    }
    stats_ = {};  // no step has sent this
    return Status();
  }

  // Nobody leaves while another may still need an answer.
  Status leave() override {
    if (!shards(ShardingStage::kWeights)) SYNCOPATE_RETURN_IF_ERROR(take_gathered({0, weights_.size()}));
    return watched({.name = "barrier", .stage = Stage::kLeaving}, [&] { return collective_.barrier(deadline()); });
  }

  Status save(TrainingState& state) const override {
    thread_.wait_for(last_ticket_);
    if (!is_whole_) {
      return Status::invalid_argument(fmt::format("step {} has failed, and its updates cannot be undone", step_.step));
    }
    state.step = steps_done_;
    for (const ShardedBucket& bucket : buckets_) {
      state.put(state_part::kWeights, bucket.own.begin, slice(weights_, bucket.own));
      bucket.state.save({0, bucket.own.size()}, bucket.own.begin, state);
    }
    return Status();
  }

 private:
  using Stage = CollectiveOperation::Stage;
  using Begin = CommunicationThread::Begin;

  TimePoint deadline() const { return clock_.now() + options_.timeout; }

  template <typename Work>
  Status watched(const CollectiveOperation& operation, const Work& work) {
    return allreduce::watched(options_.activity, clock_, operation, work);
  }

  TraceEvent traced(TraceKind kind, std::size_t bucket) const {
    return {.kind = kind, .item = static_cast<std::int32_t>(bucket), .number = step_.step};
  }

  // That all train the same, from the same step.
  Status agree() {
    SYNCOPATE_RETURN_IF_ERROR(
        prove_agreement(collective_, group_agreement_of(layout_, ranges_, collective_), deadline()));
    const std::uint64_t words[] = {restored_ ? 1u : 0u, static_cast<std::uint64_t>(steps_done_)};
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::vector<std::uint64_t>> all,
                               share_words(collective_, words, deadline()));
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (std::ranges::equal(all[rank], words)) continue;
      return Status::invalid_argument(fmt::format("rank {} goes on from step {}, and rank {} from step {}", rank,
                                                  all[rank][1], collective_.rank(), steps_done_));
    }
    return Status();
  }

  Status share_initial_weights(std::size_t number) {
    ShardedBucket& bucket = buckets_[number];
    const std::span<float> weights = slice(weights_, bucket.range);
    SYNCOPATE_RETURN_IF_ERROR(watched({.name = "broadcast",
                                       .stage = Stage::kJoining,
                                       .bytes = static_cast<std::int64_t>(weights.size_bytes()),
                                       .bucket = number,
                                       .buckets = buckets_.size()},
                                      [&] { return collective_.broadcast(weights, 0, deadline()); }));
    if (shards(ShardingStage::kWeights)) bucket.release_others(weights_);
    return Status();
  }

  // Tells all which parts of the buckets are whose, and begins to answer.
  Status begin_exchange() {
    std::vector<Range> own;
    for (const ShardedBucket& bucket : buckets_) own.push_back(bucket.own);
    SYNCOPATE_ASSIGN_OR_RETURN(PartsOfRanks parts, share_parts(collective_, own, deadline()));
    const auto update = [this](std::size_t number, std::span<const float> sum) {
      std::ranges::copy(sum, slice(gradients_, buckets_[number].own).begin());
      apply(number);
    };
    return exchange_->start(weights_, std::move(parts), options_.passes, steps_done_, update);
  }

  // Where workers meet on demand: returns once everybody's gradients have come, and the update is made of them.
  Status meet() {
    const std::uint64_t ticket = submit(
        [this] {
          if (failure_.ok()) failure_ = exchange_->end_step(deadline());
        },
        Begin::kNow);
    thread_.wait_for(ticket, Duration::zero());
    SYNCOPATE_RETURN_IF_ERROR(failure_);  // nothing else is under way
    SYNCOPATE_RETURN_IF_ERROR(exchange_->wait_for_update(deadline()));
    const TransportCounters answered = exchange_->take_answered();
    stats_.bytes_out += answered.payload_bytes_out;
    stats_.bytes_in += answered.payload_bytes_in;
    return {};
  }

  // A pass writes its gradients where those of the pass before were.
  void wait_for_sums(Range range) {
    for (const ShardedBucket& bucket : buckets_) {
      if (overlap(bucket.range, range)) thread_.wait_for(bucket.summing);
    }
  }

  bool shards(ShardingStage stage) const { return options_.stage >= stage; }

  // Counts the time of `work` as a wait, within that pass unless it is null.
  template <typename Work>
  Status counted(Duration SyncStats::*within, const Work& work) {
    const ExposedWait wait(clock_, stats_, within);
    return work();
  }

  // Under stages below kWeights, whether a step's new weights are gathered beside the next forward pass.
  bool gathers_beside_forward() const { return options_.overlap && !collective_.works_in_memory(); }

  // Returns once the new weights of `range` are here, under stages below kWeights.
  Status take_gathered(Range range) {
    for (std::size_t number = buckets_.size(); number-- > 0;) {
      ShardedBucket& bucket = buckets_[number];
      if (bucket.gathering == 0 || !overlap(bucket.range, range)) continue;
      SYNCOPATE_RETURN_IF_ERROR(await(number, std::exchange(bucket.gathering, 0), bucket.gathered));
      report_weights(bucket.range);
    }
    return Status();
  }

  // Returns once all weights of `range` are here. At stage 3 gives back all others, but for those that the next calls
  // of this step will ask for, as far as the step before it tells: they are gathered meanwhile.
  Status take_weights(Range range) {
    if (!shards(ShardingStage::kWeights)) return take_gathered(range);
    if (is_whole_) return Status();  // between steps: see gather_weights
    const std::span<const Range> wanted =
        asked_.ask(range, options_.overlap ? kBucketsAhead * options_.bucket_bytes : 0);
    for (ShardedBucket& bucket : buckets_) {
      if (std::ranges::none_of(wanted, [&](Range each) { return overlap(each, bucket.range); })) {
        keep_own_weights(bucket);
      }
    }
    for (const Range each : wanted) {
      for (std::size_t number = 0; number < buckets_.size(); ++number) {
        if (overlap(buckets_[number].range, each) && buckets_[number].gathering == 0) gather(number);
      }
    }
    for (std::size_t number = 0; number < buckets_.size(); ++number) {
      if (overlap(buckets_[number].range, range)) {
        SYNCOPATE_RETURN_IF_ERROR(await(number, buckets_[number].gathering, buckets_[number].gathered));
      }
    }
    return Status();
  }

  // Gives others' weights back, and waits for them if they are on their way.
  void keep_own_weights(ShardedBucket& bucket) {
    if (bucket.gathering == 0) return;
    thread_.wait_for(std::exchange(bucket.gathering, 0));
    bucket.gathered.count(stats_);  // a failure is kept, and told by who waits for weights
    bucket.release_others(weights_);
  }
  void keep_own_weights() {
    for (ShardedBucket& bucket : buckets_) keep_own_weights(bucket);
  }

  // Hands over the buckets up to this one, whose gradients are final. Where gradients are sharded, sums begin at once,
  // so that their pages can be given back.
  void submit_up_to(std::size_t bucket) {
    const Begin begin = shards(ShardingStage::kGradients) ? Begin::kNow : beside_compute();
    for (; submitted_ <= bucket; ++submitted_) {
      const auto work = [this, number = submitted_, step = step_.step, pass = pass_] { sum(number, step, pass); };
      buckets_[submitted_].summing = submit(work, begin);
    }
  }

  // Work in memory gains nothing by a thread that takes a processor from one that computes.
  Begin beside_compute() const {
    return collective_.works_in_memory() && !exchange_ ? Begin::kWhenWaitedFor : Begin::kNow;
  }

  std::uint64_t submit(std::function<void()> work, Begin begin) {
    return last_ticket_ = thread_.submit(std::move(work), begin);
  }

  // On the thread that communicates, which may be behind the step that begins.
  void sum(std::size_t number, std::int64_t step, int pass) {
    ShardedBucket& bucket = buckets_[number];
    const std::span<float> gradients = slice(gradients_, bucket.range);
    communicate(exchange_ ? "scatter" : "reduce_scatter", number, step, gradients, bucket.summed, [&] {
      if (number == 0 && pass == 0 && !rates_memory_.empty()) {
        SYNCOPATE_RETURN_IF_ERROR(collective_.all_reduce(rates_memory_, deadline()));
      }
      if (exchange_) return exchange_->scatter(number, gradients_, deadline());
      SYNCOPATE_RETURN_IF_ERROR(collective_.reduce_scatter(gradients, deadline()));
      bucket.add_up(gradients_, pass, options_.passes, clock_);
      return Status();
    });
    if (shards(ShardingStage::kGradients)) bucket.release_others(gradients_);
  }

  void gather(std::size_t number) {
    const auto work = [this, number, step = step_.step, weights = slice(weights_, buckets_[number].range)] {
      communicate(exchange_ ? "gather" : "all_gather", number, step, weights, buckets_[number].gathered, [&] {
        return exchange_ ? exchange_->gather(number, deadline()) : collective_.all_gather(weights, deadline());
      });
    };
    buckets_[number].gathering = submit(work, beside_compute());
  }

  // After one failure, nothing is tried again.
  template <typename Work>
  void communicate(const char* name, std::size_t number, std::int64_t step, std::span<const float> buffer,
                   CommunicationOutcome& outcome, const Work& work) {
    const CollectiveOperation operation{.name = name,
                                        .bytes = static_cast<std::int64_t>(buffer.size_bytes()),
                                        .step = step,
                                        .bucket = number,
                                        .buckets = buckets_.size()};
    const auto carry_out = [&] {
      if (failure_.ok()) failure_ = watched(operation, work);
      return failure_;
    };
    add_to(outcome, exchange_ ? outcome_of(*exchange_, clock_, carry_out) : outcome_of(collective_, clock_, carry_out));
  }

  Status await(std::size_t number, std::uint64_t ticket, CommunicationOutcome& outcome) {
    const TraceSpan span(tracer_of(options_.activity), traced(TraceKind::kWait, number));
    thread_.wait_for(ticket, Duration::zero());
    return outcome.count(stats_).in(fmt::format("step {}, bucket {}", step_.step, number));
  }

  void apply(std::size_t number) {
    const UpdateStep update{.learning_rate = step_.learning_rate,
                            .gradient_scale = 1.0f / static_cast<float>(collective_.size()),
                            .number = step_.step + 1};
    const TraceSpan span(tracer_of(options_.activity), traced(TraceKind::kUpdate, number));
    ShardedBucket& bucket = buckets_[number];
    bucket.optimizer.apply(slice(weights_, bucket.own), slice(gradients_, bucket.own), bucket.state, 0, update);
    clock_.processed(Processing::kUpdate, bucket.own.size() * sizeof(float));
  }

  Collective& collective_;
  const ShardedOptions options_;
  const Clock& clock_;
  ParamLayout layout_;
  std::span<float> weights_, gradients_, rates_memory_;  // the collective's memory
  SharedRates rates_;                                    // of nobody, unless options_.agrees_on_rates
  std::vector<Range> ranges_;                            // of the buckets
  std::vector<ShardedBucket> buckets_;
  StepContext step_;
  int pass_ = 0;               // of this step
  std::size_t submitted_ = 0;  // buckets of this pass
  std::uint64_t last_ticket_ = 0;
  SyncStats stats_;  // since the last step's
  AskedRanges asked_;
  Status failure_;  // of the thread that communicates
  bool restored_ = false;
  bool is_whole_ = false;  // joined, and no step is under way, nor has one failed
  std::int64_t steps_done_ = 0;
  std::optional<OnDemandExchange> exchange_;  // its thread works on the above
  mutable CommunicationThread thread_;        // last: it works on all of the above
};

}  // namespace

std::unique_ptr<SyncStrategy> make_sharded_strategy(Collective& collective, const ShardedOptions& options,
                                                    const Clock& clock) {
  return std::make_unique<ShardedStrategy>(collective, options, clock);
}

}  // namespace syncopate::allreduce
