// Chunk: one chunk of a shard. It decides which push updates its weights and when, and who is answered. Chunks know
// nothing of each other: each has versions and clocks of its own. No I/O, no threads; times come with the calls.
//
// Push and pull are one operation: a push is answered with weights, as soon as the `Consistency` (consistency.h)
// allows. Chunk by chunk:
//   - Gradients of which all workers' make an update are held until all live workers have pushed theirs, then applied:
//     their mean, summed host by host (host_groups.h), so that the result does not depend on the order of arrival. With
//     backup workers
//     the first N make the update, and a later one (of an older version) is dropped, counted, and answered at once.
//     Each chunk may take another N workers, as each variable does in TensorFlow's accumulators; if fewer than N
//     workers are left, all that are left are needed. Weights that workers have come to are pushed as how far they have
//     moved from those that they were given, as if that were a gradient, with a rate of 1.
//     With a quorum the update waits for the grace beyond it, or until all live workers have pushed. A later push is
//     answered at once and added to a sum, which the next update takes in; its worker counts for that quorum, or else
//     workers could wait for each other in different chunks. Each push weighs as much as its rate says: the number of
//     steps that it stands for.
//   - A gradient of which several make an update is added to a sum. Its staleness is the same at its push and at the
//     update. Once nobody trains any more, what remains of a sum makes the last update.
//   - Any other push is applied when it arrives. An elastic one carries a worker's weights: it moves the chunk's
//   weights
//     towards them by the rate that it carries, and is answered with the weights just after that.
//   - Where steps may be left out, a gradient that its worker has marked is not applied; of an update that all workers'
//     gradients make, one that is marked leaves the whole update out, which still counts as a version.
//   - Where a rule bounds the staleness, a response waits until its worker's lead is within the bound, and then carries
//     the weights of that moment.
// staleness.h describes the remedies for stale gradients that are applied when they arrive.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/optimizer/optimizer.h"
#include "common/status.h"
#include "ps/policy/consistency.h"
#include "ps/policy/consistency_state.h"
#include "ps/policy/host_groups.h"
#include "ps/policy/membership.h"
#include "ps/policy/staleness.h"
#include "ps/server/chunk_weights.h"
#include "ps/server/weights_pool.h"

namespace syncopate::ps {

struct PushRequest {
  Step step;
  std::size_t chunk = 0;     // index in the shard
  std::int64_t version = 0;  // of the weights that the gradient was computed from
  std::span<const float> gradient;
};

struct ChunkOptions {
  Consistency consistency;
  OptimizerConfig optimizer;   // if gradients are pushed
  StalenessOptions staleness;  // if stale gradients are applied
  HostGroups hosts;            // if updates are made together: how these are summed
  bool leaves_out = false;     // a marked gradient (common/left_out_step.h) makes no update, nor any beside it
  const UpdateFunction* function = nullptr;  // makes updates instead of the optimizer, if set
};

struct ChunkCounters {
  std::int64_t pushes = 0;         // accepted
  std::int64_t late = 0;           // how many of these were dropped, because their update had been made
  std::int64_t staleness_sum = 0;  // over applied pushes
  std::int64_t staleness_max = 0;
};

class Chunk {
 public:
  // `members` and `pool` must outlive this object.
  Chunk(const ChunkOptions& options, const Membership& members, WeightsPool& pool);

  // Says where in the arena the chunk lies, and which ranges of it weight decay leaves out. Call it before create or
  // restore.
  void place(Range range, std::span<const Range> undecayed) { weights_.place(range, undecayed); }
  // Creates the chunk with the chief's weights, which are copied.
  Status create(std::span<const float> initial) { return weights_.create(initial); }
  // Alternative to create: restores `range` of the arena from a state that save() or a checkpoint has made, with a
  // clock for each worker (clocks_to_go_on_with). Fails with data loss if something is missing.
  Status restore(Range range, const TrainingState& state);
  bool created() const { return weights_.created(); }
  // Adds to `state` all that this chunk, which begins at `begin` of the arena, must remember. A held push is not saved:
  // it counts as not yet pushed.
  void save(std::size_t begin, TrainingState& state) const;

  // Fails with invalid argument, and changes nothing, if the push cannot be valid; any other failure is of memory. The
  // gradient is either used within the call or held: it must not change while has_pending_gradient(worker).
  Status push(const PushRequest& request);
  // Removes a lost worker. What is held of it is dropped.
  void lose(int worker);
  // Makes the update that is due if fewer workers are now waited for, or, with a quorum, if its grace has passed at
  // `now`.
  Status update_if_enough_pushed(TimePoint now = TimePoint::min());
  // When the grace of a quorum that has pushed will have passed; the end of time if none has.
  TimePoint meets_at() const { return meets_at_; }
  // Makes the last update, from what has been pushed and not yet applied. Nobody may push afterwards.
  Status finish();

  // The number of pushes received from the worker so far.
  std::int64_t clock(int worker) const { return rule_.clock(worker); }
  // The worker's gradient is held for an update that waits for others.
  bool has_pending_gradient(int worker) const { return !of(worker).gradient.empty(); }
  // The worker has pushed, and has not got the weights yet.
  bool has_pending_pull(int worker) const { return of(worker).pulls; }
  bool has_pending_request(int worker) const { return has_pending_pull(worker); }
  // The worker's pull is pending, and its response is due.
  bool may_respond(int worker) const;
  // What decides, besides a worker's own push, whether it may be answered: while this stays the same, nobody's response
  // has become due but that of the one who has pushed.
  struct Gate {
    std::int64_t updates = 0;  // those that held gradients wait for
    std::int64_t slowest = 0;
    bool operator==(const Gate&) const = default;
  };
  Gate gate() const { return {options_.consistency.updates_together() ? weights_.version() : 0, rule_.gate()}; }
  // No response may go to `worker` before `other` has pushed again, however few make an update.
  bool waits_for(int worker, int other) const { return rule_.waits_for(worker, other); }

  // What a response to `worker` sent now says and carries.
  struct Answer {
    std::int64_t clock = 0;
    std::int64_t version = 0;
    std::int64_t staleness = 0;      // of the push that is answered: updates between its pull and itself
    bool late = false;               // the push was dropped
    std::span<const float> weights;  // must not change while `pending` counts a send of them
    PendingSends* pending = nullptr;
  };
  Answer answer(int worker);
  // `worker` has shown by its next message that it has read its last response.
  void returned(int worker);

  const ChunkWeights& weights() const { return weights_; }
  const ChunkCounters& counters() const { return counters_; }

 private:
  struct Worker {
    bool pulls = false;
    std::int64_t pushed_version = 0;  // version that its last gradient was computed from
    std::int64_t version = 0;         // of its last response
    std::int64_t staleness = 0;
    bool late = false;
    std::span<const float> gradient;  // held, if updates are made together
    bool is_in_sum = false;           // with a quorum: a push of it came too late for the last update
    double learning_rate = 0;
  };

  Worker& of(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  const Worker& of(int worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  Status check(const PushRequest& request) const;
  Status apply_stale(const PushRequest& request);
  bool is_left_out(std::span<const float> gradient) const;
  Status update_from_sum();
  // Returns whether dividing by staleness scales each gradient, as the paper does; otherwise it scales the rate.
  bool scales_gradients() const;
  void correct_momentum();
  // With a quorum: adds a push to the sum, and makes an update of the sum.
  void add_to_meeting(const ChunkWeights::StaleGradient& moved, double steps);
  Status meet();

  ChunkOptions options_;
  const Membership& members_;
  ChunkWeights weights_;
  ConsistencyState rule_;
  std::vector<Worker> workers_;
  int held_ = 0;     // gradients
  GradientSum sum_;  // of the update under way
  int come_ = 0;     // with a quorum: workers of whom something is held or in the sum
  TimePoint meets_at_ = TimePoint::max();
  TimePoint last_push_ = TimePoint::min();  // when the last push arrived
  // The sum, where several pushes make an update, and of those that came too late for a meeting.
  int summed_ = 0;
  float summed_weight_ = 0;
  float summed_rate_ = 0;  // learning rate of the last gradient in it
  MeanStaleness mean_staleness_;
  float rate_gain_ = 1;  // gain of the applied momentum over that of the configured one
  ChunkCounters counters_;
};

}  // namespace syncopate::ps
