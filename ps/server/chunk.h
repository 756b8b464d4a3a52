// Chunk: one chunk of a shard: which push updates its weights and when, and who is answered. Chunks know nothing of
// each other: each has versions and clocks of its own. No I/O, no threads, no time.
//
// Push and pull are one: a push is answered with weights. What `Consistency` says, chunk by chunk:
//   sync        gradients are held until all live workers have pushed theirs, then applied as one update: their mean,
//               summed in rank order, so that the result does not depend on who came first. With backup workers the
//               first N do, and one that comes later (of an older version) is dropped, counted, and answered at once.
//               Each chunk may take another N, as each variable does in TensorFlow's accumulators; and while fewer than
//               N workers are left, all that are left are needed.
//   bounded:k   each push is applied as it comes; its answer waits until the slowest live worker is within k clocks,
//               and then carries the weights of that moment.
//   softsync:n  each push is added to a sum and answered as it comes; every c-th makes an update of the sum. The
//               staleness of a gradient is the same at its push and at the update. What is left of a sum once nobody
//               trains any more makes the last update.
//   async       each push is applied and answered as it comes.
//   local-sgd:k as sync; what is pushed is how far a worker has come from the weights that it was given, as if it were
//               a gradient, with a rate of 1. Applied with plain sgd, the mean of these leads to the mean of the
//               weights.
//   easgd:k     each push, which carries a worker's weights, moves these weights towards them by the rate that it
//               carries, and is answered with the weights just after that.
// What helps against stale gradients, where they are applied as they come, says staleness.h.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/optimizer/optimizer.h"
#include "common/status.h"
#include "ps/policy/consistency.h"
#include "ps/policy/membership.h"
#include "ps/policy/staleness.h"
#include "ps/server/chunk_weights.h"
#include "ps/server/weights_pool.h"

namespace syncopate::ps {

struct PushRequest {
  int worker = 0;
  std::size_t chunk = 0;     // of the shard
  std::int64_t clock = 0;    // pushes of this worker to this chunk, this one included
  std::int64_t version = 0;  // of the weights that the gradient was computed from
  float learning_rate = 0;
  std::span<const float> gradient;
};

struct ChunkOptions {
  Consistency consistency;
  OptimizerConfig optimizer;   // where gradients are pushed
  StalenessOptions staleness;  // where stale gradients are applied
};

struct ChunkCounters {
  std::int64_t pushes = 0;         // accepted
  std::int64_t late = 0;           // of these: came when their update had been made, and were dropped
  std::int64_t staleness_sum = 0;  // over pushes that were applied
  std::int64_t staleness_max = 0;
};

class Chunk {
 public:
  // `members` and `pool` outlive this object.
  Chunk(const ChunkOptions& options, const Membership& members, WeightsPool& pool);

  // Ranges of the chunk that weight decay leaves out. Before create or restore.
  void leave_undecayed(std::vector<Range> ranges) { weights_.leave_undecayed(std::move(ranges)); }
  // The chief's weights; they are copied.
  Status create(std::span<const float> initial) { return weights_.create(initial); }
  // Or, instead, what save() or a checkpoint has told of `range` of the arena, with a clock for each worker
  // (clocks_to_go_on_with). Fails with data loss where something is missing.
  Status restore(Range range, const TrainingState& state);
  bool created() const { return weights_.created(); }
  // Adds to `state` all that this chunk, which begins at `begin` of the arena, must remember. A push that is held is no
  // part of it: it has not been pushed.
  void save(std::size_t begin, TrainingState& state) const;

  // Fails with invalid argument, and changes nothing, if the push cannot be right; any other failure is of memory.
  // The gradient is used within the call, or is held: it must stay as it is while holds_gradient(worker).
  Status push(const PushRequest& request);
  // The worker is gone: what is held of it is dropped.
  void lose(int worker);
  // The update that is due now that fewer workers are waited for.
  Status update_if_enough_pushed();
  // The last update, of what has been pushed and not been applied: nobody will push any more.
  Status finish();

  // Pushes of the worker so far.
  std::int64_t clock(int worker) const { return of(worker).clock; }
  bool holds_gradient(int worker) const { return !of(worker).gradient.empty(); }
  // Whether the worker has pushed and is not answered yet (so that it waits); and whether its answer is due.
  bool owes(int worker) const { return of(worker).owed; }
  bool waits(int worker) const { return owes(worker); }
  bool may_answer(int worker) const;

  // What an answer to `worker` now says and carries.
  struct Answer {
    std::int64_t clock = 0;
    std::int64_t version = 0;
    std::int64_t staleness = 0;      // of the push that is answered: updates between its pull and itself
    bool late = false;               // it was dropped
    std::span<const float> weights;  // stay as they are while `pending` counts a send of them
    PendingSends* pending = nullptr;
  };
  Answer answer(int worker);
  // `worker` has shown, by its next message, that it has read its last answer.
  void returned(int worker);

  const ChunkWeights& weights() const { return weights_; }
  const ChunkCounters& counters() const { return counters_; }

 private:
  struct Worker {
    std::int64_t clock = 0;
    bool owed = false;
    std::int64_t pushed_version = 0;  // that its last gradient was computed from
    std::int64_t version = 0;         // of its last answer
    std::int64_t staleness = 0;
    bool late = false;
    std::span<const float> gradient;  // held, where updates are made together
    float learning_rate = 0;
  };

  Worker& of(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  const Worker& of(int worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  Status check(const PushRequest& request) const;
  Status apply_stale(const PushRequest& request);
  Status update_from_sum();
  // Whether dividing by staleness scales each gradient, as the paper does; else the rate.
  bool scales_gradients() const;
  void correct_momentum();
  std::int64_t slowest_clock() const;

  ChunkOptions options_;
  const Membership& members_;
  ChunkWeights weights_;
  std::vector<Worker> workers_;
  std::vector<std::span<const float>> gradients_;  // of the update under way
  // Of softsync's sum.
  int summed_ = 0;
  float summed_weight_ = 0;
  float summed_rate_ = 0;  // that the last of them came with
  MeanStaleness mean_staleness_;
  float rate_gain_ = 1;  // of the momentum that is applied, over that which was asked for
  ChunkCounters counters_;
};

}  // namespace syncopate::ps
