// ChunkReader: reads what the shards have of each chunk between a worker's steps: its weights, and what the optimizer
// remembers of it. A chunk is read as it is at one moment; others may be read some updates later, if workers do not
// wait for each other. Each shard is asked for one chunk at a time, so that no inbox fills. It is part of a PsStrategy,
// which receives and waits. Used by the compute thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/status.h"
#include "common/training_state.h"
#include "common/transport/transport.h"
#include "ps/client/arena_links.h"
#include "ps/client/shard_sender.h"
#include "ps/wire.pb.h"

namespace syncopate::ps {

class ChunkReader {
 public:
  // Both must outlive this object.
  ChunkReader(ArenaLinks& links, ShardSender& sender) : links_(links), sender_(sender) {}

  // Begins to read all chunks: what shards send goes into `state` (state_part::kOptimizer) and into `weights`, those of
  // the arena, both of which must stay valid while is_due(). The last reading need not have ended.
  Status begin(std::span<float> weights, TrainingState& state);
  bool is_due() const;
  bool awaits(int shard) const;
  // Returns whether `message`, which carries `read`, is a response that is due; then asks its shard for the next chunk.
  Result<bool> accept(const wire::ChunkRead& read, const Message& message, int shard);

 private:
  Status ask(int shard);

  ArenaLinks& links_;
  ShardSender& sender_;
  std::span<float> weights_;
  TrainingState* state_ = nullptr;
  std::uint64_t reads_ = 0;         // begun so far
  std::vector<std::size_t> chunk_;  // by shard: the chunk that it was asked for; behind its last one, none
};

}  // namespace syncopate::ps
