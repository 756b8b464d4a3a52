// ShardCodec: the gradients that workers have pushed, decompressed, and the answers to them, compressed.
//
// An answer carries the difference between the chunk's weights and what its worker has, which the shard knows: it keeps
// a mirror of every worker's weights, and adds to it what the worker will, the decoded difference. What a codec has
// lost of one difference is therefore in the next: the residual of Tang et al. 2019 ("DoubleSqueeze", algorithm 1)
// without an arena of its own. A mirror costs one more shard of memory for each worker, and so do gradients that are
// held until others have come. One thread.
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
    bool holds_gradients = false;  // of several pushes at once, as Chunk does where updates are made together
  };
  // Memory that answers are sent from comes from `allocate`.
  ShardCodec(const Options& options, WeightsPool::Allocate allocate);

  // Where the arena's tensors begin; before anything is encoded or decoded.
  void know_tensors(TensorBegins begins);

  // The gradient, of `elements` floats, of a push. Stays as it is until the next push to that chunk by that worker, or,
  // unless gradients are held, until the next of all. Fails with invalid argument if the payload is no encoding of it.
  Result<std::span<const float>> decode(const PushName& push, std::span<const std::byte> payload, std::size_t elements);

  // The worker is sent these weights as they are.
  void sent_in_full(int worker, std::size_t chunk, std::span<const float> weights);

  // Adds to `state` what `worker` has of the chunk, which begins at `begin` of the arena.
  void save(int worker, std::size_t chunk, std::size_t begin, TrainingState& state) const;

  // What to answer to `push`, where `weights` are the chunk's: send `payload` in place, counted in `pending`.
  struct Answer {
    std::span<const std::byte> payload;
    PendingSends* pending = nullptr;
  };
  Result<Answer> encode(const PushName& push, std::span<const float> weights);
  // What a worker begins with that goes on with `range` of the arena as save() has told of it: the same for all.
  Result<Answer> greet(int worker, std::size_t chunk, Range range, const TrainingState& state);

  // What the worker's weights of the chunk are once it has taken its answers.
  std::span<const float> mirror(int worker, std::size_t chunk) { return room(mirrors_, worker, chunk).span(); }

 private:
  using Rooms = std::vector<AlignedBuffer>;  // by chunk, then worker
  std::size_t index_of(int worker, std::size_t chunk) const {
    return chunk * static_cast<std::size_t>(options_.workers) + static_cast<std::size_t>(worker);
  }
  AlignedBuffer& room(Rooms& rooms, int worker, std::size_t chunk);

  const Options options_;
  Codec codec_;
  Rooms gradients_;  // one where none are held
  Rooms mirrors_;
  AlignedBuffer difference_;                     // as large as the largest chunk so far
  WeightsPool pool_;                             // of encoded answers
  std::vector<WeightsPool::Buffer*> greetings_;  // by chunk; until the first answer to a push
  std::vector<std::int64_t> epochs_;             // by chunk, then worker: of the last push, and so of its answer
};

}  // namespace syncopate::ps
