// ShardCodec: decompresses the gradients that workers have pushed, and compresses the responses.
//
// A response carries the difference between the chunk's weights and what its worker has. The shard knows what its
// worker has: it keeps a mirror of every worker's weights, and adds to it what the worker will add, the decoded
// difference. So what a codec loses of one difference is part of the next: this is the residual of Tang et al. 2019
// ("DoubleSqueeze", algorithm 1) without an arena of its own. A mirror costs one more shard of memory per worker, and
// so do gradients that are held until others have arrived. One thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "common/codec/codec.h"
#include "common/os/aligned_buffer.h"
#include "common/param_layout.h"
#include "common/status.h"
#include "common/training_state.h"
#include "ps/compression.h"
#include "ps/server/weights_pool.h"

namespace syncopate::ps {

class ShardCodec {
 public:
  struct Options {
    Compression compression;
    int workers = 1;
    int shard = 0;
    bool holds_gradients = false;  // of several pushes at once, like Chunk if updates are made together
  };
  // `allocate` provides the memory that responses are sent from.
  ShardCodec(const Options& options, WeightsPool::Allocate allocate);

  // Sets where the arena's tensors lie. Call it before anything is encoded or decoded.
  void know_tensors(TensorRanges tensors);

  // Returns the gradient of a push, `elements` floats. It stays valid until the next push to that chunk by that worker
  // or, unless gradients are held, until the next push of any. Fails with invalid argument if the payload is not its
  // encoding.
  Result<std::span<const float>> decode(const PushName& push, std::span<const std::byte> payload, std::size_t elements);

  // Records that the worker is sent these weights uncompressed.
  void sent_in_full(int worker, std::size_t chunk, std::span<const float> weights);

  // Adds to `state` what `worker` has of the chunk, which begins at `begin` of the arena.
  void save(int worker, std::size_t chunk, std::size_t begin, TrainingState& state) const;

  // The response to `push`, where `weights` are the chunk's: send `payload` in place, counted in `pending`.
  struct Answer {
    std::span<const std::byte> payload;
    PendingSends* pending = nullptr;
  };
  Result<Answer> encode(const PushName& push, std::span<const float> weights);
  // Returns what a worker that goes on begins with, `range` of the arena as saved in `state`. It is the same for all.
  Result<Answer> greet(int worker, std::size_t chunk, Range range, const TrainingState& state);

  // Returns the worker's weights of the chunk, as they are once it has taken its responses.
  std::span<const float> mirror(int worker, std::size_t chunk) { return room(mirrors_, worker, chunk).span(); }

 private:
  using Rooms = std::vector<AlignedBuffer>;  // by chunk, then worker
  std::size_t index_of(int worker, std::size_t chunk) const {
    return chunk * static_cast<std::size_t>(options_.workers) + static_cast<std::size_t>(worker);
  }
  AlignedBuffer& room(Rooms& rooms, int worker, std::size_t chunk);

  const Options options_;
  Codec codec_;
  Rooms gradients_;  // one buffer if none are held
  Rooms mirrors_;
  AlignedBuffer difference_;                     // as large as the largest chunk so far
  WeightsPool pool_;                             // of encoded responses
  std::vector<WeightsPool::Buffer*> greetings_;  // by chunk; until the first answer to a push
  std::vector<std::int64_t> epochs_;             // by chunk, then worker: epoch of the last push, and so of its
                                                 // response
};

}  // namespace syncopate::ps
