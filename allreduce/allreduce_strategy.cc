#include "allreduce/allreduce_strategy.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "allreduce/agreement.h"
#include "allreduce/bucket_search.h"
#include "allreduce/communication_thread.h"
#include "allreduce/compression/compressed_reduction.h"
#include "allreduce/replicated_tables.h"

namespace syncopate::allreduce {
namespace {

// One bucket's way through a step: written by the thread that reduces it, read once its ticket is done.
struct BucketWork {
  Status status;
  TimePoint begin{};
  TimePoint end{};
  Duration codec{};  // of this time, what went into compression
};

class AllReduceStrategy final : public SyncStrategy {
 public:
  AllReduceStrategy(Collective& collective, const AllReduceOptions& options, const Clock& clock)
      : collective_(collective),
        options_(options),
        optimizer_(options.optimizer),
        clock_(clock),
        tables_(collective, clock,
                {.optimizer = options.optimizer,
                 .seed = options.seed,
                 .exchange = options.sparse_exchange,
                 .on_found = options.on_exchange_found}) {}

  Result<ParamArenas> allocate(const ParamLayout& layout) override {
    layout_ = layout;
    for (std::span<float>* arena : {&arenas_.weights, &arenas_.gradients}) {
      Result<std::span<float>> memory = collective_.allocate(layout.size());
      if (!memory.ok()) return memory.status();
      *arena = *memory;
    }
    state_.emplace(options_.optimizer.kind, layout.dense().size());
    return arenas_;
  }

  Result<std::vector<Range>> join() override {
    if (options_.bucket_bytes > 0) {
      grains_ = buckets_in_backward_order(layout_, options_.bucket_bytes);
      candidates_ = {{options_.bucket_bytes, grains_}};
    } else {
      grains_ = buckets_in_backward_order(layout_, 0);  // one a tensor
      candidates_ = bucket_candidates(layout_);
    }
    std::vector<Range> in_order;
    for (const BucketCandidate& candidate : candidates_) {
      in_order.insert(in_order.end(), candidate.buckets.begin(), candidate.buckets.end());
    }
    SYNCOPATE_RETURN_IF_ERROR(watched({.name = "all_reduce", .stage = Stage::kJoining}, [&] {
      return prove_agreement(collective_, common_ground_of(layout_, in_order, collective_, options_.codec), deadline());
    }));
    const std::span<float> dense = slice(arenas_.weights, layout_.dense());
    SYNCOPATE_RETURN_IF_ERROR(watched({.name = "broadcast", .stage = Stage::kJoining, .bytes = bytes_of(dense)},
                                      [&] { return collective_.broadcast(dense, 0, deadline()); }));
    SYNCOPATE_RETURN_IF_ERROR(tables_.prepare(layout_));
    if (options_.codec.kind != CodecKind::kNone) {
      Result<std::unique_ptr<CompressedReduction>> made =
          make_compressed_reduction(options_.codec, layout_, options_.seed, collective_, clock_);
      if (!made.ok()) return made.status();
      compressed_ = std::move(*made);
    }
    const Result<std::span<float>> times = collective_.allocate(candidates_.size());
    if (!times.ok()) return times.status();
    times_ = *times;
    search_ = BucketSearch(candidates_.size());
    buckets_ = candidates_.front().buckets;
    work_.resize(grains_.size());
    return grains_;
  }

  void begin_step(const StepContext& step) override {
    step_ = step;
    before_ = collective_.counters();
    begin_ = clock_.now();
    submitted_ = 0;
    if (!search_.ended()) buckets_ = candidates_[search_.candidate()].buckets;
    if (rows_.ok()) rows_ = tables_.begin_step(step.rows, arenas_.weights);
  }

  void gradient_ready(std::size_t grain) override {
    if (options_.overlap) submit_from(grains_[grain].begin);
  }

  Status weights_needed(Range /*range*/) override { return rows_; }

  Result<SyncStats> finish_step() override {
    SYNCOPATE_RETURN_IF_ERROR(rows_);
    submit_from(0);
    SyncStats stats;
    const UpdateStep update{.learning_rate = static_cast<float>(step_.learning_rate),
                            .gradient_scale = 1.0f / static_cast<float>(collective_.size()),
                            .number = step_.step + 1};
    const std::uint64_t first_ticket = last_ticket_ + 1 - buckets_.size();
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      const TimePoint begin = clock_.now();
      thread_.wait_for(first_ticket + bucket);
      const BucketWork& work = work_[bucket];
      if (!work.status.ok()) return work.status.in(fmt::format("step {}, bucket {}", step_.step, bucket));
      const TimePoint reduced = clock_.now();
      SYNCOPATE_RETURN_IF_ERROR(apply(bucket, update));
      stats.exposed_wait += reduced - begin;
      stats.communication += work.end - work.begin;
      stats.codec += work.codec;
      stats.optimizer += clock_.now() - reduced;
      if (!table_of(bucket)) report_weights(buckets_[bucket]);
    }
    const TransportCounters after = collective_.counters();
    stats.bytes_out = after.payload_bytes_out - before_.payload_bytes_out;
    stats.bytes_in = after.payload_bytes_in - before_.payload_bytes_in;
    if (!search_.ended()) SYNCOPATE_RETURN_IF_ERROR(search().in(fmt::format("step {}, bucket search", step_.step)));
    SYNCOPATE_RETURN_IF_ERROR(tables_.end_step(deadline()).in(fmt::format("step {}, tables", step_.step)));
    return stats;
  }

  // All workers have made the same updates; nobody leaves while another may still need an answer.
  Status leave() override {
    if (!search_.ended()) tell(fmt::format("not found: a search takes {} steps", search_.steps()));
    tables_.leave();
    return watched({.name = "barrier", .stage = Stage::kLeaving}, [&] { return collective_.barrier(deadline()); });
  }

  Status read_rows(std::size_t table, RowKeys keys, std::span<float> values) override {
    tables_.rows(table).peek(keys, values);
    return Status();
  }
  Result<std::vector<RowKey>> touched_rows(std::size_t table) override { return tables_.rows(table).keys(); }

 private:
  using Stage = CollectiveOperation::Stage;

  TimePoint deadline() const { return clock_.now() + options_.timeout; }
  static std::int64_t bytes_of(std::span<const float> part) { return static_cast<std::int64_t>(part.size_bytes()); }

  template <typename Work>
  Status watched(const CollectiveOperation& operation, const Work& work) {
    return allreduce::watched(options_.activity, clock_, operation, work);
  }

  // The table that a bucket is, if it is one: tables come last in backward.
  std::optional<std::size_t> table_of(std::size_t bucket) const {
    const std::size_t from_the_last = buckets_.size() - 1 - bucket;
    return from_the_last < tables_.size() ? std::optional(from_the_last) : std::nullopt;
  }

  Status apply(std::size_t bucket, const UpdateStep& update) {
    if (const std::optional<std::size_t> table = table_of(bucket)) return tables_.update(*table, update);
    const Range range = buckets_[bucket];
    optimizer_.apply(slice(arenas_.weights, range), slice(arenas_.gradients, range), *state_,
                     range.begin - layout_.dense().begin, update);
    return Status();
  }

  // Hands over the buckets of gradients that are all final where those from `begin` on are.
  void submit_from(std::size_t begin) {
    for (; submitted_ < buckets_.size() && buckets_[submitted_].begin >= begin; ++submitted_) {
      last_ticket_ = thread_.submit([this, bucket = submitted_] { reduce(bucket); });
    }
  }

  void reduce(std::size_t bucket) {
    BucketWork& work = work_[bucket];
    work.begin = clock_.now();
    work.status = failure_;  // after one failure, nothing is tried again
    if (failure_.ok()) {
      const std::optional<std::size_t> table = table_of(bucket);
      const std::span<float> gradients = slice(arenas_.gradients, buckets_[bucket]);
      const bool gathers = table && tables_.way(*table) == TableWay::kRows;
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
    if (compressed_ == nullptr) return collective_.all_reduce(gradients, deadline());
    const Result<Duration> spent = compressed_->reduce(buckets_[bucket], gradients, step_.step, deadline());
    if (spent.ok()) codec = *spent;
    return spent.status();
  }

  // Notes how long this step has taken. After the last one the ranks agree on the sum of their times.
  Status search() {
    search_.step_took(clock_.now() - begin_);
    if (!search_.ended()) return {};
    const std::vector<Duration> medians = search_.medians();
    for (std::size_t i = 0; i < medians.size(); ++i) times_[i] = static_cast<float>(1e3 * seconds(medians[i]));
    SYNCOPATE_RETURN_IF_ERROR(collective_.all_reduce(times_, deadline()));
    buckets_ = candidates_[fastest(times_)].buckets;
    tell(describe_search(candidates_, times_, collective_.size()));
    return {};
  }
  void tell(const std::string& finding) const {
    if (options_.on_search_end) options_.on_search_end(finding);
  }

  Collective& collective_;
  const AllReduceOptions options_;
  const Optimizer optimizer_;
  const Clock& clock_;
  ParamLayout layout_;
  ParamArenas arenas_;
  std::optional<OptimizerState> state_;  // of what is no table
  ReplicatedTables tables_;
  Status rows_;                // how reading a step's rows has gone
  std::vector<Range> grains_;  // what backward reports, in its order
  std::vector<BucketCandidate> candidates_;
  BucketSearch search_{1};
  std::span<float> times_;  // by candidate, in the collective's memory
  // One of the candidates': each bucket is one grain or several neighbours.
  std::span<const Range> buckets_;
  std::unique_ptr<CompressedReduction> compressed_;  // null: gradients go as they are
  std::vector<BucketWork> work_;                     // by bucket
  std::size_t submitted_ = 0;                        // buckets of this step
  Status failure_;                                   // the first, of whichever bucket
  StepContext step_;
  TimePoint begin_;           // of this step
  TransportCounters before_;  // at the step's beginning
  std::uint64_t last_ticket_ = 0;
  CommunicationThread thread_;  // last: it works on all of the above
};

}  // namespace

std::unique_ptr<SyncStrategy> make_allreduce_strategy(Collective& collective, const AllReduceOptions& options,
                                                      const Clock& clock) {
  return std::make_unique<AllReduceStrategy>(collective, options, clock);
}

}  // namespace syncopate::allreduce
