// How gradients and weights are compressed between workers and shards. All members of a job use the same settings.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/codec/codec_config.h"
#include "common/hash.h"

namespace syncopate::ps {

struct Compression {
  CodecConfig codec;       // none: no compression; not PowerSGD, which needs rounds between workers
  bool answers = true;     // compress weights, too, as differences
  std::uint64_t seed = 0;  // seeds random-k and stochastic rounding

  bool of_pushes() const { return codec.kind != CodecKind::kNone; }
  bool of_answers() const { return of_pushes() && answers; }
};

// Names a push, or the response to it.
struct PushName {
  int worker = 0;
  int shard = 0;
  std::size_t chunk = 0;   // index in the shard
  std::int64_t clock = 0;  // pushes of this worker to this chunk, this one included
  std::size_t begin = 0;   // where the chunk begins in the arena
};

// The key (common/codec/codec.h) of a push, or of the response to it. Responses to all workers share one key, so that
// under sync, where all are sent the same differences, they also have the same bits.
enum class Direction : std::uint64_t { kToShard, kToWorker };
inline std::uint64_t codec_key(const Compression& compression, Direction direction, const PushName& push) {
  Fnv hash;
  hash.add(compression.seed);
  hash.add(static_cast<std::uint64_t>(direction));
  hash.add(static_cast<std::uint64_t>(direction == Direction::kToShard ? push.worker : 0));
  hash.add(static_cast<std::uint64_t>(push.shard));
  hash.add(push.chunk);
  hash.add(static_cast<std::uint64_t>(push.clock));
  return hash.value();
}

}  // namespace syncopate::ps
