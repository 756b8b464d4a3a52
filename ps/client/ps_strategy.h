// PsStrategy: the worker's side of the parameter servers.
//
// Its buckets are chunks. As soon as backward has finished a chunk, its gradient goes to the shard that holds it, while
// backward goes on; the shard's response carries the chunk's next weights. So pushes, updates and pulls of different
// chunks overlap, in both directions of the wire. The compute thread owns the endpoint: a send passes a pointer and
// never waits for the network.
//
// At most `window_bytes` of pushes per shard are unanswered, so a server need not hold more for a worker. Under a
// consistency whose responses wait for other workers, all workers must push in the same order; otherwise they could
// wait for each other's chunks forever. The order of backward (PushScheduler::Order::kFifo) is the same for all.
//
// Rows of tables (table_client.h) are pulled when a step begins, and weights_needed waits for those of its range. The
// tables' buckets come after all chunks. Gradients of rows are sent as soon as they are ready, outside the window.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/activity.h"
#include "common/clock.h"
#include "common/sync_strategy.h"
#include "common/trace/tracer.h"
#include "common/transport/transport.h"
#include "ps/client/arena_links.h"
#include "ps/client/chunk_reader.h"
#include "ps/client/gradient_pusher.h"
#include "ps/client/shard_sender.h"
#include "ps/client/step_traffic.h"
#include "ps/client/table_client.h"
#include "ps/client/worker_codec.h"
#include "ps/compression.h"
#include "ps/group.h"
#include "ps/policy/push_scheduler.h"
#include "ps/policy/sharding.h"
#include "ps/wire.pb.h"

namespace syncopate::ps {

struct PsStrategyOptions {
  PsGroup group;
  Sharding sharding;
  PushScheduler::Order push_order = PushScheduler::Order::kFifo;
  std::size_t window_bytes = 8 * 1024 * 1024;
  // The number of steps whose responses finish_step need not wait for. The worker then computes with weights that lack
  // its own last gradients. Each such step costs one more arena of gradients.
  int pipeline_depth = 0;
  // finish_step does not wait for responses, and weights_needed waits only for those of its range: the last pulls
  // arrive while the next forward pass runs. Cannot be combined with a pipeline.
  bool overlap_forward = false;
  // Whether weights may change during backward, once the gradients of their chunk are ready. Off for a model that may
  // still read them then.
  bool answers_in_backward = true;
  Compression compression;
  Duration timeout = std::chrono::seconds(30);  // of join and of finish_step
  // Makes the arenas, of so many floats each; null: they lie in the transport's memory. What it makes must outlive the
  // transport, which must carry bytes.
  std::function<Result<std::span<float>>(std::size_t elements)> make_arena = {};
  // The following describe one membership epoch of a job; the defaults are for a job that begins.
  int chief = kChief;  // the lowest worker there, who brings the initial weights
  // The job goes on: the shards have their weights, and report how far this worker had come.
  bool goes_on = false;
  // By shard, the member that receives what workers send. Empty means rank_of_shard, as without standbys.
  std::vector<int> heads = {};
  // Keeps what is needed to repeat a push that a lost server has not applied. This takes one more arena if the codec
  // keeps residuals.
  bool undoes_pushes = false;
  Tracer* tracer = nullptr;  // records pushes, answers and waits, if set; outlives the strategy
};

class PsStrategy final : public SyncStrategy, public Resumable, public TableReader {
 public:
  // `transport` is the endpoint of a worker of the group. It, `clock` and `activity` (may be null) must outlive this
  // object.
  PsStrategy(PsStrategyOptions options, Transport& transport, const Clock& clock, Activity* activity);
  // If there are tables, tells the servers that this worker, which has left, reads no more. The servers stay until
  // then.
  ~PsStrategy() override;

  Resumable* resumable() override { return this; }
  TableReader* table_reader() override { return this; }
  // Fails with invalid argument if there are tables together with a pipeline or with a push order other than
  // backward's.
  Result<ParamArenas> allocate(const ParamLayout& layout) override;

  // Covers the residuals of error feedback. Where a job begins, the chief also brings the shards what the optimizer
  // remembers, if `state` has that, as made by state.step updates; where it goes on, they have it.
  Status restore(const TrainingState& state) override;
  Status save(TrainingState& state) const override;

  // Fails with invalid argument, naming the worker whose layout differs, if the workers' layouts or shardings differ.
  // Fails with deadline exceeded, naming the silent shards, if not all workers and shards have joined in time.
  Result<std::vector<Range>> join() override;

  // The first step for which a shard lacks a push of this worker. When steps from there on are repeated, this worker
  // does not push what has been applied already: each push is applied once, and the chunk keeps the weights of the
  // welcome meanwhile.
  std::int64_t first_step() const override { return first_round_; }
  // The number of this worker's pushes to the bucket's chunk that have been answered, including those that the welcome
  // reported.
  std::int64_t answered(std::size_t bucket) const { return links_.chunks[bucket].answered; }
  // Lets the next push to the bucket's chunk say that it is of weights before the newest.
  void push_as_older(std::size_t bucket) {
    std::int64_t& version = links_.chunks[bucket].version;
    version = std::max<std::int64_t>(0, version - 1);
  }

  // Before begin_step, for a worker that makes its own updates, and pushes where these have led: at which rate.
  void state_rate(double rate) { pusher_.state_rate(rate); }

  void begin_step(const StepContext& step) override;
  void gradient_ready(std::size_t bucket) override;

  // Fails with deadline exceeded, naming the silent shards; and with invalid argument, naming two workers, if the
  // shards have found that these make the same step at different rates. When it returns, the gradients may be
  // overwritten; with overlap_forward they may be overwritten once weights_needed has been called for all weights. The
  // returned figures cover the responses since the last call.
  Result<SyncStats> finish_step() override;

  Status weights_needed(Range range) override;

  // The updates of the chunk that has had the fewest. Empty if there are no chunks.
  std::optional<std::int64_t> updates() const override;

  // Between steps: adds to `state` what the shards' optimizer remembers (state_part::kOptimizer). The weights become
  // those of the same moment, chunk by chunk, unless answers are compressed and the same for all workers: then they
  // stay what these have, of as many updates. Any worker, alone; fails with deadline exceeded, naming the silent
  // shards.
  Status read_optimizer(TrainingState& state);

  // Waits until all workers that are still in the job have left, which takes as long as the slowest of them trains.
  // This wait has no deadline of its own: if a server dies meanwhile, the control plane's heartbeats notice it and end
  // this wait through transport.interrupt().
  Status leave() override;

  // Creates the rows that do not exist yet. Any worker may read, since another worker becomes chief if the chief is
  // lost.
  Status read_rows(std::size_t table, RowKeys keys, std::span<float> values) override;
  Result<std::vector<RowKey>> touched_rows(std::size_t table) override;

  // The number of messages that were dropped because they failed the checks.
  std::int64_t dropped() const { return dropped_; }

 private:
  enum class Phase { kJoining, kTraining, kLeaving, kLeft };

  TimePoint timeout_from_now() const { return clock_.now() + options_.timeout; }
  void set_activity(const char* operation);

  // Goes on from where the shards reported this worker to be.
  void take_up();
  // Waits for the responses to what is being read.
  Status finish_reading();
  Status check_reads(std::size_t table) const;
  std::size_t table_of(std::size_t bucket) const { return links_.chunks.size() + tables_.tables() - 1 - bucket; }

  // Takes the responses that have arrived, without waiting.
  Status take_answers();
  // Receives, and sends what the responses allow, until `complete` returns true. Without a deadline only the
  // transport's interrupt ends it early.
  template <typename Complete>
  Status exchange_until(Complete&& complete, std::optional<TimePoint> deadline);
  // Waits until the weights of all chunks have arrived after a welcome or a farewell.
  Status receive_all_weights(std::optional<TimePoint> deadline);
  Status accept(const Message& message);
  bool accept_greeting(int shard);
  Status rates_differ(const wire::Weights& weights) const;
  bool accept_weights(const Message& message, int shard);
  // Returns whether `payload` is valid as a response to the chunk's next push, or as a greeting. If so, it is now in
  // the arena.
  bool take_weights(const ChunkLink& chunk, std::span<const std::byte> payload);
  bool accept_rows(const Message& message, int shard);
  // Returns the event of taking the answer in incoming_, before it is known to be due.
  TraceEvent traced_answer(const Message& message, int shard) const;
  void drop(const Message& message);

  std::string silent_shards() const;
  SyncStats take_stats(TimePoint wait_begin);

  PsStrategyOptions options_;
  Transport& transport_;
  const Clock& clock_;
  Activity* activity_;

  ParamArenas arenas_;
  ArenaLinks links_;
  std::span<const Range> tensors_;  // in the transport's memory; used if anything is
                                    // compressed
  std::vector<Range> undecayed_;    // of the arena
  ShardSender sender_;
  StepTraffic traffic_;
  std::optional<WorkerCodec> codec_;  // if anything is compressed
  GradientPusher pusher_;
  TableClient tables_;
  ChunkReader reader_;
  TrainingState brought_;  // until join: what the chief brings beside the weights

  Phase phase_ = Phase::kJoining;
  std::int64_t first_round_ = 0;
  std::int64_t round_ = 0;  // rounds of pushes that are finished, in the whole job
  StepContext step_;
  bool in_backward_ = false;
  Status failure_;                 // the first failure of this step's pushes
  std::vector<Range> unreported_;  // ranges whose new weights arrived during backward
  SyncStats waits_;                // within this step's forward
  Duration backward_codec_{};      // in this step
  wire::Header incoming_;          // reused
  std::int64_t dropped_ = 0;
};

}  // namespace syncopate::ps
