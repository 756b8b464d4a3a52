#include "allreduce/strategy/allreduce_strategy.h"

#include <fmt/format.h>

#include <cassert>
#include <optional>
#include <vector>

#include "allreduce/collective/communication_thread.h"
#include "allreduce/compression/compressed_reduction.h"
#include "allreduce/compression/reduction_history.h"
#include "allreduce/strategy/agreement.h"
#include "allreduce/strategy/bucket_choice.h"
#include "allreduce/strategy/replica_state.h"
#include "allreduce/strategy/replicated_tables.h"
#include "allreduce/strategy/shared_rates.h"
#include "allreduce/strategy/state_agreement.h"
#include "common/left_out_step.h"
#include "common/os/usable_cores.h"

namespace syncopate::allreduce {
namespace {

// Whether a thread that sums beside compute has a core to do it on, as far as this process sees. Where it has none it
// takes one from a rank that computes, and the others wait for that rank: two workers on two cores lose a fifth of
// their speed.
bool has_core_for_sums(const Collective& collective) {
  if (!collective.works_in_memory()) return true;
  const std::size_t cores = usable_cores().size();
  return cores == 0 || static_cast<std::size_t>(collective.size()) < cores;
}

// One bucket's way through a step: written by the thread that reduces it, read once its ticket is done.
struct BucketWork {
  Status status;
  TimePoint begin{};
  TimePoint end{};
  Duration codec{};  // of this time, what went into compression
};

class AllReduceStrategy final : public SyncStrategy, public Resumable, public TableReader {
  using Begin = CommunicationThread::Begin;

 public:
  AllReduceStrategy(Collective& collective, const AllReduceOptions& options, const Clock& clock)
      : collective_(collective),
        options_(options),
        clock_(clock),
        tables_(collective, clock,
                {.optimizer = options.optimizer,
                 .seed = options.seed,
                 .exchange = options.sparse_exchange,
                 .on_found = options.on_exchange_found,
                 .undoable = options.elastic}),
        replica_(options.optimizer, tables_),
        choice_(collective, options.bucket_bytes, options.on_search_end),
        sums_beside_compute_(has_core_for_sums(collective)),
        thread_(*options.threads) {
    assert(options.optimizer.takes_momentum == (options.codec.whole_updates > 0));
    assert(!options.optimizer.takes_momentum || options.optimizer.frozen_after == options.codec.whole_updates);
  }

  Resumable* resumable() override { return this; }
  TableReader* table_reader() override { return this; }
  Result<ParamArenas> allocate(const ParamLayout& layout) override {
    layout_ = layout;
    const std::size_t behind = options_.agrees_on_rates ? SharedRates::floats(collective_.size()) : 0;
    SYNCOPATE_ASSIGN_OR_RETURN(arenas_.weights, collective_.allocate(layout.size()));
    SYNCOPATE_ASSIGN_OR_RETURN(gradients_and_rates_, collective_.allocate(layout.size() + behind));
    arenas_.gradients = gradients_and_rates_.first(layout.size());
    if (behind > 0) {
      rates_ = SharedRates(gradients_and_rates_.subspan(layout.size()), collective_.rank(), collective_.size());
    }
    replica_.allocate(layout, arenas_.weights);
    if (options_.codec.kind != CodecKind::kNone) {
      SYNCOPATE_ASSIGN_OR_RETURN(
          compressed_, make_compressed_reduction(options_.codec, layout_, options_.seed, collective_, clock_));
      history_ = ReductionHistory(compressed_->memories(), worker_of(collective_.rank()));
    }
    found_.resize(1 + layout.tables().size());
    return arenas_;
  }

  Status restore(const TrainingState& state) override {
    SYNCOPATE_RETURN_IF_ERROR(replica_.restore(state));
    history_.restore(state);
    const auto found = state.counts.find(kFound);
    if (found != state.counts.end() && found->second.size() == found_.size()) {
      found_.assign(found->second.begin(), found->second.end());
    }
    restored_ = true;
    steps_done_ = state.step;
    return Status();
  }

  Result<std::vector<Range>> join() override {
    choice_.cut(layout_);
    Result<StatePlan> plan = StatePlan();
    SYNCOPATE_RETURN_IF_ERROR(watched({.name = "all_reduce", .stage = Stage::kJoining}, [&] {
      plan = agree();
      return plan.status();
    }));
    std::int64_t bytes = 0;
    for (const Range& own : layout_.dense_places()) {
      if (plan->giver < 0) bytes += bytes_of(slice(arenas_.weights, own));
    }
    SYNCOPATE_RETURN_IF_ERROR(
        watched({.name = "broadcast", .stage = Stage::kJoining, .bytes = bytes}, [&] { return spread(*plan); }));
    SYNCOPATE_RETURN_IF_ERROR(tables_.prepare(std::span(plan->found).subspan(1)));
    SYNCOPATE_RETURN_IF_ERROR(choice_.prepare(plan->found.front()));
    buckets_ = choice_.buckets();
    work_.resize(choice_.grains().size());
    updates_.assign(work_.size(), Duration::max());
    joined_ = true;
    return choice_.grains();
  }

  std::int64_t first_step() const override { return first_step_; }

  void begin_step(const StepContext& step) override {
    step_ = step;
    in_step_ = true;
    before_ = collective_.counters();
    begin_ = clock_.now();
    submitted_ = 0;
    buckets_ = choice_.buckets();
    rates_.say(step.learning_rate);
    if (rows_.ok()) rows_ = tables_.begin_step(step.rows, arenas_.weights);
    if (options_.elastic && !history_.empty()) last_ticket_ = thread_.submit([this] { history_.keep(); });
  }

  void gradient_ready(std::size_t grain) override {
    if (options_.overlap) submit_from(choice_.grains()[grain].begin);
  }

  Status weights_needed(Range /*range*/) override { return rows_; }

  Result<SyncStats> finish_step() override {
    SYNCOPATE_RETURN_IF_ERROR(rows_);
    submit_from(0);
    SyncStats stats;
    const UpdateStep update{.learning_rate = step_.learning_rate,
                            .gradient_scale = 1.0f / static_cast<float>(collective_.size()),
                            .number = update_number()};
    const std::uint64_t first_ticket = last_ticket_ + 1 - buckets_.size();
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      SYNCOPATE_RETURN_IF_ERROR(await(bucket, first_ticket + bucket, stats));
      if (const Status alike = bucket == 0 ? rates_.check() : Status(); !alike.ok()) {
        thread_.wait_for(last_ticket_);  // all ranks do: none is left waiting for one that is gone
        return alike.in(fmt::format("step {}", step_.step));
      }
      if (!options_.elastic) SYNCOPATE_RETURN_IF_ERROR(apply(bucket, update, stats));
    }
    for (std::size_t bucket = 0; options_.elastic && bucket < buckets_.size(); ++bucket) {
      SYNCOPATE_RETURN_IF_ERROR(apply(bucket, update, stats));
    }
    in_step_ = applies_ = false;
    steps_done_ = step_.step + 1;
    const TransportCounters sent = collective_.counters() - before_;
    stats.bytes_out = sent.payload_bytes_out;
    stats.bytes_in = sent.payload_bytes_in;
    SYNCOPATE_RETURN_IF_ERROR(
        choice_.step_took(clock_.now() - begin_, deadline()).in(fmt::format("step {}, bucket search", step_.step)));
    SYNCOPATE_RETURN_IF_ERROR(tables_.end_step(deadline()).in(fmt::format("step {}, tables", step_.step)));
    return stats;
  }

  // All workers have made the same updates; nobody leaves while another may still need an answer.
  Status leave() override {
    choice_.leave();
    tables_.leave();
    return watched({.name = "barrier", .stage = Stage::kLeaving}, [&] { return collective_.barrier(deadline()); });
  }

  Status read_rows(std::size_t table, RowKeys keys, std::span<float> values) override {
    tables_.rows(table).peek(keys, values);
    return Status();
  }
  Result<std::vector<RowKey>> touched_rows(std::size_t table) override { return tables_.rows(table).keys(); }

  Status save(TrainingState& state) const override {
    thread_.wait_for(last_ticket_);
    if (!joined_) return Status::invalid_argument("nothing to save before join");
    if (in_step_ && (applies_ || !options_.elastic)) {
      return Status::invalid_argument(fmt::format("step {} has failed in the midst of its update{}", step_.step,
                                                  options_.elastic ? "" : ": only elastic allreduce can undo a step"));
    }
    state.step = steps_done_;
    replica_.save(state);
    history_.save(state, in_step_);
    std::vector<std::int64_t>& found = state.counts[kFound];
    found.assign(1, static_cast<std::int64_t>(choice_.found()));
    for (const std::uint64_t way : tables_.found()) found.push_back(static_cast<std::int64_t>(way));
    return Status();
  }

 private:
  // In TrainingState::counts: the bucket size that was found, and the way of each table.
  static constexpr const char* kFound = "allreduce.found";

  using Stage = CollectiveOperation::Stage;

  // Returns the number of the step's update: 1 for the first of the job.
  std::int64_t update_number() const { return step_.update + 1; }
  TimePoint deadline() const { return clock_.now() + options_.timeout; }
  static std::int64_t bytes_of(std::span<const float> part) { return static_cast<std::int64_t>(part.size_bytes()); }

  Tracer* tracer() const { return tracer_of(options_.activity); }
  TraceEvent traced(TraceKind kind, std::size_t bucket) const {
    return {.kind = kind, .item = static_cast<std::int32_t>(bucket), .number = step_.step};
  }

  template <typename Work>
  Status watched(const CollectiveOperation& operation, const Work& work) {
    return allreduce::watched(options_.activity, clock_, operation, work);
  }

  // The table that a bucket is, if it is one: tables come last in backward.
  std::optional<std::size_t> table_of(std::size_t bucket) const {
    const std::size_t from_the_last = buckets_.size() - 1 - bucket;
    return from_the_last < tables_.size() ? std::optional(from_the_last) : std::nullopt;
  }

  int worker_of(int rank) const {
    return options_.workers.empty() ? rank : options_.workers[static_cast<std::size_t>(rank)];
  }

  // That all train the same, and where they stand.
  Result<StatePlan> agree() {
    SYNCOPATE_RETURN_IF_ERROR(prove_agreement(
        collective_, group_agreement_of(layout_, choice_.all_buckets(), collective_, options_.codec), deadline()));
    const MemberStatus own{.worker = worker_of(collective_.rank()),
                           .has_state = restored_,
                           .steps = steps_done_,
                           .content = restored_ ? replica_.content() : 0,
                           .found = found_};
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<MemberStatus> members, share_statuses(collective_, own, deadline()));
    Result<StatePlan> plan = plan_state(members);
    if (plan.ok() && plan->giver >= 0 && options_.on_going_on) options_.on_going_on(describe(*plan, members));
    return plan;
  }

  // The chief's weights where a job begins, else the state after the last step to those that lack it.
  Status spread(const StatePlan& plan) {
    if (plan.giver < 0) {
      for (const Range& own : layout_.dense_places()) {
        SYNCOPATE_RETURN_IF_ERROR(collective_.broadcast(slice(arenas_.weights, own), 0, deadline()));
      }
      return Status();
    }
    if (restored_ && plan.first_step > steps_done_) history_.count_failed_step();
    first_step_ = steps_done_ = plan.first_step;
    if (!plan.anybody_takes()) return Status();
    const bool takes = plan.takes[static_cast<std::size_t>(collective_.rank())];
    SYNCOPATE_ASSIGN_OR_RETURN(StateTransfer transfer,
                               StateTransfer::begin(collective_, plan.giver, takes, [this] { return deadline(); }));
    SYNCOPATE_RETURN_IF_ERROR(replica_.transfer(transfer));
    return history_.transfer(transfer);
  }

  Status await(std::size_t bucket, std::uint64_t ticket, SyncStats& stats) {
    const TimePoint begin = clock_.now();
    const TraceSpan span(tracer(), traced(TraceKind::kWait, bucket));
    thread_.wait_for(ticket, options_.elastic ? Duration::zero() : updates_[bucket]);
    const BucketWork& work = work_[bucket];
    if (!work.status.ok()) return work.status.in(fmt::format("step {}, bucket {}", step_.step, bucket));
    stats.exposed_wait += clock_.now() - begin;
    stats.communication += work.end - work.begin;
    stats.codec += work.codec;
    return Status();
  }

  Status apply(std::size_t bucket, const UpdateStep& update, SyncStats& stats) {
    const TimePoint begin = clock_.now();
    const TraceSpan span(tracer(), traced(TraceKind::kUpdate, bucket));
    applies_ = true;
    const Range range = buckets_[bucket];
    if (const std::optional<std::size_t> table = table_of(bucket)) {
      SYNCOPATE_RETURN_IF_ERROR(tables_.update(*table, update));
    } else if (!options_.leaves_out || !is_left_out(slice(arenas_.gradients, range))) {
      replica_.apply(range, slice(arenas_.gradients, range), update);
      clock_.processed(Processing::kUpdate, range.size() * sizeof(float));
    }
    updates_[bucket] = clock_.now() - begin;
    stats.optimizer += updates_[bucket];
    if (!table_of(bucket)) report_weights(range);
    return Status();
  }

  // Hands over the buckets of gradients that are all final where those from `begin` on are.
  void submit_from(std::size_t begin) {
    for (; submitted_ < buckets_.size() && buckets_[submitted_].begin >= begin; ++submitted_) {
      last_ticket_ = thread_.submit([this, bucket = submitted_] { reduce(bucket); },
                                    sums_beside_compute_ ? Begin::kNow : Begin::kWhenWaitedFor);
    }
  }

  void reduce(std::size_t bucket) {
    BucketWork& work = work_[bucket];
    work.begin = clock_.now();
    work.status = failure_;  // after one failure, nothing is tried again
    if (failure_.ok()) {
      const std::optional<std::size_t> table = table_of(bucket);
      const std::span<float> gradients = slice(arenas_.gradients, buckets_[bucket]);
      const bool gathers = table && tables_.method(*table) == ExchangeMethod::kRows;
      const CollectiveOperation operation{.name = gathers ? "all_to_all" : "all_reduce",
                                          .bytes = bytes_of(gradients),
                                          .step = step_.step,
                                          .bucket = bucket,
                                          .buckets = buckets_.size()};
      work.status = failure_ = watched(operation, [&] {
        if (table) return tables_.exchange(*table, step_.rows[*table], arenas_.gradients, deadline());
        return sum(bucket, gradients, work.codec);
      });
    }
    work.end = clock_.now();
  }

  Status sum(std::size_t bucket, std::span<float> gradients, Duration& codec) {
    const bool is_warmup = step_.step < options_.codec.whole_updates;
    const bool takes_rates = options_.agrees_on_rates && bucket == 0;
    const std::span<float> rates = gradients_and_rates_.subspan(layout_.size());
    if (compressed_ == nullptr || is_warmup) {
      // They lie behind the first bucket.
      const std::span<float> both{gradients.data(), gradients.size() + (takes_rates ? rates.size() : 0)};
      return collective_.all_reduce(both, deadline());
    }
    if (takes_rates) SYNCOPATE_RETURN_IF_ERROR(collective_.all_reduce(rates, deadline()));
    const TimePoint begin = clock_.now();
    if (replica_.takes_momentum_in(update_number())) replica_.to_momentum(buckets_[bucket], gradients);
    codec = clock_.now() - begin;
    const Result<Duration> spent =
        compressed_->reduce(buckets_[bucket], gradients, {step_.step, step_.epoch}, deadline());
    if (spent.ok()) codec += *spent;
    return spent.status();
  }

  Collective& collective_;
  const AllReduceOptions options_;
  const Clock& clock_;
  ParamLayout layout_;
  ParamArenas arenas_;
  std::span<float> gradients_and_rates_;
  SharedRates rates_;  // of nobody, unless options_.agrees_on_rates
  ReplicatedTables tables_;
  ReplicaState replica_;
  ReductionHistory history_;
  bool restored_ = false;
  bool joined_ = false;
  std::int64_t first_step_ = 0;
  std::int64_t steps_done_ = 0;
  bool in_step_ = false;              // between its begin and the end of its update
  bool applies_ = false;              // the update has begun
  std::vector<std::uint64_t> found_;  // that was restored: a bucket size, and a way for each table
  Status rows_;                       // how reading a step's rows has gone
  BucketChoice choice_;
  std::span<const Range> buckets_;                   // of this step
  std::unique_ptr<CompressedReduction> compressed_;  // null: gradients go as they are
  std::vector<BucketWork> work_;                     // by bucket
  std::vector<Duration> updates_;                    // by bucket: how long its last update has taken
  std::size_t submitted_ = 0;                        // buckets of this step
  Status failure_;                                   // the first, of whichever bucket
  StepContext step_;
  TimePoint begin_;           // of this step
  TransportCounters before_;  // at the step's beginning
  std::uint64_t last_ticket_ = 0;
  const bool sums_beside_compute_;
  mutable CommunicationThread thread_;  // last: it works on all of the above
};

}  // namespace

std::unique_ptr<SyncStrategy> make_allreduce_strategy(Collective& collective, const AllReduceOptions& options,
                                                      const Clock& clock) {
  return std::make_unique<AllReduceStrategy>(collective, options, clock);
}

}  // namespace syncopate::allreduce
