// GradientPusher: sends a worker's gradients: it chooses the memory that they are sent from and which of them may go
// now, and counts those that are unanswered. It is part of PsStrategy, which receives the responses. Used by the
// compute thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/sync_strategy.h"
#include "common/trace/tracer.h"
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
    std::size_t window_bytes = 0;  // the most that may be unanswered, per shard
    int pipeline_depth = 0;        // steps whose responses the next step need not wait for
    Tracer* tracer = nullptr;      // records pushes, if set
  };
  // `worker` is the rank that pushes. `links`, whose `ready` and `pushed` are counted here, `sender` and `traffic` must
  // outlive this object.
  GradientPusher(const Options& options, int worker, ArenaLinks& links, ShardSender& sender, StepTraffic& traffic);

  // Allocates the memory that gradients of `arenas` are sent from. That is their own arena, copies of it if there is a
  // pipeline, or the memory of `codec`, which must outlive this object; null means no codec. Call it once, when the
  // links are known. Fails as Transport::allocate does.
  Status allocate(Transport& transport, const ParamArenas& arenas, WorkerCodec* codec);

  // The number of steps whose gradients may be in flight at a time. Each step sends from memory of its own.
  std::size_t slots() const { return static_cast<std::size_t>(options_.pipeline_depth) + 1; }
  // The counter of sends that still read the gradients of `step`.
  PendingSends& pending(std::int64_t step) { return pending_[slot_of(step)]; }

  // The gradient of `step` lies in the arena. Sends what may be sent now.
  Status ready(std::size_t bucket, const StepContext& step);
  // Sends what may be sent now. Call it after responses have been received.
  Status push_what_may_go();
  // From now on, pushes say that the worker makes its own updates at this rate.
  void state_rate(double rate) { own_rate_ = rate; }
  // Records that the next push of the chunk has been answered.
  void answered(ChunkLink& chunk);

  bool all_sent() const { return scheduler_.empty(); }
  bool all_answered() const { return scheduler_.idle(); }
  // True if no chunk has more unanswered gradients than the pipeline is deep.
  bool keeps_up() const { return behind_ == 0; }

 private:
  // A gradient that is ready to be pushed, or in flight.
  struct Outgoing {
    std::span<const std::byte> gradient;  // as it is sent
    std::int64_t version = 0;             // version of the weights that it was computed from
    double learning_rate = 0;
  };

  std::size_t slot_of(std::int64_t step) const { return static_cast<std::size_t>(step) % slots(); }
  // Returns the gradient in the arena as it is to be sent: in place, copied, or compressed.
  std::span<const std::byte> to_be_sent(std::size_t bucket, std::size_t slot);
  Status push(std::size_t bucket, std::size_t slot);
  // The bytes of the window that a push of the chunk takes.
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
  std::optional<double> own_rate_;
  std::int64_t behind_ = 0;  // chunks with more unanswered gradients than the pipeline is deep
};

}  // namespace syncopate::ps
