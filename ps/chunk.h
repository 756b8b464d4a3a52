// Chunk: one chunk of a shard: which push updates its weights and when, and who is answered. Chunks know nothing of
// each other: each has versions and clocks of its own. No I/O, no threads, no time.
//
// Push and pull are one: a push is answered with weights.
//   sync        gradients are held until all live workers have pushed theirs, then applied as one update: their mean,
//               summed in rank order, so that the result does not depend on who came first.
//   bounded:k   each push is applied as it comes; its answer waits until the slowest live worker is within k clocks,
//               and then carries the weights of that moment (Ho et al. 2013, section 2).
//   async       each push is applied and answered as it comes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/optimizer.h"
#include "common/status.h"
#include "ps/chunk_weights.h"
#include "ps/consistency.h"
#include "ps/membership.h"
#include "ps/weights_pool.h"

namespace syncopate::ps {

struct PushRequest {
  int worker = 0;
  std::size_t chunk = 0;     // of the shard
  std::int64_t clock = 0;    // pushes of this worker to this chunk, this one included
  std::int64_t version = 0;  // of the weights that the gradient was computed from
  float learning_rate = 0;
  std::span<const float> gradient;
};

struct ChunkCounters {
  std::int64_t pushes = 0;         // accepted
  std::int64_t staleness_sum = 0;  // over pushes that were applied
  std::int64_t staleness_max = 0;
};

class Chunk {
 public:
  // `members` and `pool` outlive this object.
  Chunk(Consistency consistency, OptimizerConfig optimizer, const Membership& members, WeightsPool& pool);

  // The chief's weights; they are copied.
  Status create(std::span<const float> initial) { return weights_.create(initial); }
  bool created() const { return weights_.created(); }

  // Fails with invalid argument, and changes nothing, if the push cannot be right; any other failure is of memory.
  // The gradient is used within the call, or is held: it must stay as it is while holds_gradient(worker).
  Status push(const PushRequest& request);
  // The worker is gone: what is held of it is dropped.
  void lose(int worker);
  // The update that is due now that fewer workers are waited for.
  Status update_if_all_pushed();

  bool holds_gradient(int worker) const { return !of(worker).gradient.empty(); }
  // Whether the worker has pushed and is not answered yet; and whether its answer is due.
  bool owes(int worker) const { return of(worker).owed; }
  bool may_answer(int worker) const;

  // What an answer to `worker` now says and carries.
  struct Answer {
    std::int64_t clock = 0;
    std::int64_t version = 0;
    std::int64_t staleness = 0;      // of the push that is answered: updates between its pull and itself
    std::span<const float> weights;  // stay as they are while `pending` counts a send of them
    PendingSends* pending = nullptr;
  };
  Answer answer(int worker);
  // `worker` has shown, by its next message, that it has read its last answer.
  void returned(int worker) { weights_.returned(worker); }

  const ChunkWeights& weights() const { return weights_; }
  const ChunkCounters& counters() const { return counters_; }

 private:
  struct Worker {
    std::int64_t clock = 0;
    bool owed = false;
    std::int64_t pushed_version = 0;  // that its last gradient was computed from
    std::int64_t version = 0;         // of its last answer
    std::int64_t staleness = 0;
    std::span<const float> gradient;  // held, sync only
    float learning_rate = 0;
  };

  Worker& of(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  const Worker& of(int worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  Status check(const PushRequest& request) const;
  std::int64_t slowest_clock() const;

  Consistency consistency_;
  const Membership& members_;
  ChunkWeights weights_;
  std::vector<Worker> workers_;
  std::vector<std::span<const float>> gradients_;  // of the update under way
  ChunkCounters counters_;
};

}  // namespace syncopate::ps
