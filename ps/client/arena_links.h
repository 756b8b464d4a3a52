// ArenaLinks: what a worker knows about the chunks of its arena and the shards that hold them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/param_layout.h"
#include "ps/compression.h"
#include "ps/policy/sharding.h"

namespace syncopate::ps {

struct ChunkLink {
  int shard = 0;
  std::size_t number = 0;  // index of the chunk in its shard
  Range range;
  std::int64_t ready = 0;     // gradients that backward has finished
  std::int64_t pushed = 0;    // how many of these have been pushed
  std::int64_t answered = 0;  // how many of these have been answered
  bool weights_due = false;   // the weights that follow a welcome or a farewell are awaited
  std::int64_t version = 0;   // version of the weights in the arena

  bool is_awaited() const { return weights_due || pushed > answered; }
};

// Names push number `clock` of worker `worker` to the chunk.
inline PushName push_name(int worker, const ChunkLink& chunk, std::int64_t clock) {
  return {.worker = worker, .shard = chunk.shard, .chunk = chunk.number, .clock = clock, .begin = chunk.range.begin};
}

struct ShardLink {
  std::vector<std::size_t> buckets;  // by the chunk's number in the shard
  bool greeting_due = false;         // a welcome or a farewell is awaited
};

struct ArenaLinks {
  std::vector<ChunkLink> chunks;  // by bucket: from the arena's end to its beginning
  std::vector<ShardLink> shards;
  std::uint64_t hash = 0;  // of the layout and of the placement of chunks

  std::vector<Range> ranges() const;  // the ranges of all chunks
  std::size_t size_of(const ShardLink& shard) const;
  // Returns the least number of answered pushes over all chunks.
  std::int64_t least_answered() const;
};

ArenaLinks arena_links(const ParamLayout& layout, std::size_t shards, const Sharding& sharding);

}  // namespace syncopate::ps
