// GradientPusher: how a worker's gradients leave it: from what memory, which of them may go now, and what of them is
// unanswered. A part of PsStrategy, which receives the answers. The compute thread's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/sync_strategy.h"
#include "common/transport/transport.h"
#include "ps/client/arena_links.h"
#include "ps/client/shard_sender.h"
#include "ps/client/step_traffic.h"
#include "ps/client/worker_codec.h"
#include "ps/policy/push_scheduler.h"

namespace syncopate::ps {

class GradientPusher {
 public:
  struct Options {
    PushScheduler::Order order = PushScheduler::Order::kFifo;
    std::size_t window_bytes = 0;  // that may be unanswered, of each shard
    int pipeline_depth = 0;        // steps whose answers the next need not wait for
  };
  // `worker` is who pushes. `links`, of which ready and pushed are counted here, `sender` and `traffic` outlive this
  // object.
  GradientPusher(const Options& options, int worker, ArenaLinks& links, ShardSender& sender, StepTraffic& traffic);

  // Takes the memory that gradients of `arenas` are sent from: their own arena, copies where there is a pipeline, or
  // `codec`'s, which has its own and outlives this object; null: none. Once, when the links are known. Fails as
  // Transport::allocate does.
  Status allocate(Transport& transport, const ParamArenas& arenas, WorkerCodec* codec);

  // Of a pipeline, gradients of so many steps may be on their way at a time, each from memory of its own.
  std::size_t slots() const { return static_cast<std::size_t>(options_.pipeline_depth) + 1; }
  // Counts what is being read of the memory that gradients of `step` are sent from.
  PendingSends& pending(std::int64_t step) { return pending_[slot_of(step)]; }

  // The gradient of `step` lies in the arena; what may go, goes.
  Status ready(std::size_t bucket, const StepContext& step);
  // Sends what may go by now: to be called after answers.
  Status push_what_may_go();
  // The next push of the chunk has been answered.
  void answered(ChunkLink& chunk);

  bool all_sent() const { return scheduler_.empty(); }
  bool all_answered() const { return scheduler_.idle(); }
  // No chunk has more gradients unanswered than the pipeline is deep.
  bool keeps_up() const { return behind_ == 0; }

 private:
  // A gradient that lies ready to be pushed, or is under way.
  struct Outgoing {
    std::span<const std::byte> gradient;  // as it is sent
    std::int64_t version = 0;             // that it was computed from
    double learning_rate = 0;
  };

  std::size_t slot_of(std::int64_t step) const { return static_cast<std::size_t>(step) % slots(); }
  // The gradient in the arena, as it is to be sent: where it lies, a copy, or compressed.
  std::span<const std::byte> to_be_sent(std::size_t bucket, std::size_t slot);
  Status push(std::size_t bucket, std::size_t slot);
  // Of the window.
  std::size_t credit_of(const ChunkLink& chunk) const;

  const Options options_;
  const int worker_;
  ArenaLinks& links_;
  ShardSender& sender_;
  StepTraffic& traffic_;
  WorkerCodec* codec_ = nullptr;
  std::span<const float> gradients_;
  std::vector<std::span<float>> sent_arenas_;  // by slot: gradients as they are sent
  std::vector<PendingSends> pending_;          // by slot
  std::vector<Outgoing> outgoing_;             // by bucket, then slot
  PushScheduler scheduler_;
  std::int64_t behind_ = 0;  // chunks with more gradients unanswered than the pipeline is deep
};

}  // namespace syncopate::ps
