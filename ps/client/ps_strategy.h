// PsStrategy: the worker's side of the parameter servers.
//
// Its buckets are chunks: as soon as backward has finished one, its gradient goes to the shard that holds it, while
// backward goes on; the shard's answer carries the chunk's next weights. So pushes, updates and pulls of different
// chunks overlap, in both directions of the wire. The compute thread owns the endpoint: a send hands over a pointer and
// never waits for the network.
//
// Of what is handed over, no more than `window_bytes` a shard is unanswered: a server need not keep more for a worker.
// Under a consistency that lets answers wait for other workers, all workers must push in the same order, or they would
// wait for each other's chunks for ever; the order of backward (PushScheduler::Order::kFifo) is the same for all.
//
// Rows of tables (table_client.h) are asked for when a step begins, and weights_needed waits for those of its range.
// Their buckets come behind all chunks: gradients of rows go as soon as they are there, beside the window.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/activity.h"
#include "common/clock.h"
#include "common/sync_strategy.h"
#include "common/transport/transport.h"
#include "ps/client/arena_links.h"
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
  // Steps whose answers finish_step need not wait for: the worker then computes with weights that lack its own last
  // gradients. Each costs one more arena of gradients.
  int pipeline_depth = 0;
  // finish_step does not wait for answers, and weights_needed for those of its range alone: what is pulled last travels
  // while the next forward pass runs. Not together with a pipeline.
  bool overlap_forward = false;
  Compression compression;
  Duration timeout = std::chrono::seconds(30);  // of join and of finish_step
  // Of one generation of a job (which begins with none of these).
  int chief = kChief;  // the lowest worker there, who brings the initial weights
  // The job goes on: shards have their weights, and say how far this worker had come.
  bool goes_on = false;
  // By shard, the member that takes what workers send; empty: rank_of_shard, as without standbys.
  std::vector<int> heads = {};
  // Keeps what it takes to make a push again that a lost server has not applied: one more arena where the codec keeps
  // residuals.
  bool undoes_pushes = false;
};

class PsStrategy final : public SyncStrategy {
 public:
  // `transport` is the endpoint of a worker of the group; it, `clock` and `activity` (may be null) outlive this object.
  PsStrategy(PsStrategyOptions options, Transport& transport, const Clock& clock, Activity* activity);
  // Where there are tables, tells the servers that this worker, which has left, reads no more: until then they stay.
  ~PsStrategy() override;

  // Fails with invalid argument where there are tables together with a pipeline or with pushes in another order than
  // backward's.
  Result<ParamArenas> allocate(const ParamLayout& layout) override;

  // What error feedback has kept back. All else the shards tell.
  Status restore(const TrainingState& state) override;
  Status save(TrainingState& state) const override;

  // Fails with invalid argument, saying whose layout differs, if the workers' layouts or shardings are not the same,
  // and with deadline exceeded, saying which shards are silent, if not all workers and shards have joined in time.
  Result<std::vector<Range>> join() override;

  // The first of which a shard lacks a push of this worker. In the steps that are gone through again, what has been
  // applied is not pushed again: each push is applied once, and a chunk's weights stay those of the welcome meanwhile.
  std::int64_t first_step() const override { return first_round_; }
  // Pushes of this worker to a bucket of a chunk that have been answered, or of which the welcome has told.
  std::int64_t answered(std::size_t bucket) const { return links_.chunks[bucket].answered; }

  void begin_step(const StepContext& step) override;
  void gradient_ready(std::size_t bucket) override;

  // Fails with deadline exceeded, saying which shards are silent. When it returns, the gradients may be overwritten;
  // with overlap_forward, once weights_needed has been asked for all weights. Its figures are of the answers since the
  // last call.
  Result<SyncStats> finish_step() override;

  Status weights_needed(Range range) override;

  // Those of the chunk that has had fewest. None where there are no chunks.
  std::optional<std::int64_t> updates() const override;

  // Waits until all workers that are still in the job have left: as long as the slowest of them trains. No deadline of
  // its own bounds that; a server that dies meanwhile is noticed by the control plane's heartbeats, which end this wait
  // through transport.interrupt().
  Status leave() override;

  // They make the rows that are not there. Any worker may read: who is the chief changes when one is lost.
  Status read_rows(std::size_t table, RowKeys keys, std::span<float> values) override;
  Result<std::vector<RowKey>> touched_rows(std::size_t table) override;

  // Messages that did not check out and were dropped.
  std::int64_t dropped() const { return dropped_; }

 private:
  enum class Phase { kJoining, kTraining, kLeaving, kLeft };

  TimePoint timeout_from_now() const { return clock_.now() + options_.timeout; }
  void set_activity(const char* operation);

  // Goes on from where the shards have said that this worker is.
  void take_up();
  // Waits for the answers to what is read.
  Status finish_reading();
  Status check_reads(std::size_t table) const;
  std::size_t table_of(std::size_t bucket) const { return links_.chunks.size() + tables_.tables() - 1 - bucket; }

  // Takes answers that have come, without waiting.
  Status take_answers();
  // Receives, and sends what answers make room for, until `complete`. Without a deadline it ends with the transport's
  // interrupt alone.
  template <typename Complete>
  Status exchange_until(Complete&& complete, std::optional<TimePoint> deadline);
  // Until the weights of all chunks have come behind a welcome or a farewell.
  Status receive_all_weights(std::optional<TimePoint> deadline);
  Status accept(const Message& message);
  bool accept_greeting(int shard);
  bool accept_weights(const Message& message, int shard);
  // Whether `payload` is what an answer to the chunk's next push, or a greeting, carries; it is then in the arena.
  bool take_weights(const ChunkLink& chunk, std::span<const std::byte> payload);
  bool accept_rows(const Message& message, int shard);
  void drop(const Message& message);

  std::string silent_shards() const;
  SyncStats take_stats(TimePoint wait_begin);

  PsStrategyOptions options_;
  Transport& transport_;
  const Clock& clock_;
  Activity* activity_;

  ParamArenas arenas_;
  ArenaLinks links_;
  std::span<const std::uint64_t> begins_;  // of tensors, in the transport's memory; where anything is compressed
  std::vector<Range> undecayed_;           // of the arena
  ShardSender sender_;
  StepTraffic traffic_;
  std::optional<WorkerCodec> codec_;  // where anything is compressed
  GradientPusher pusher_;
  TableClient tables_;

  Phase phase_ = Phase::kJoining;
  std::int64_t first_round_ = 0;
  std::int64_t round_ = 0;  // rounds of pushes that are finished, in the whole job
  StepContext step_;
  bool in_backward_ = false;
  Status failure_;                 // the first of this step's pushes
  std::vector<Range> unreported_;  // ranges whose new weights came during backward
  Duration forward_wait_{};        // of this step
  wire::Header incoming_;          // reused
  std::int64_t dropped_ = 0;
};

}  // namespace syncopate::ps
