// ConsistencyState: what a consistency rule remembers of one chunk or table: the workers' clocks, and what a rule that
// bounds staleness keeps beside them. It decides whether a worker may get its response. Pure. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ps/policy/consistency.h"
#include "ps/policy/membership.h"
#include "ps/policy/staleness_bound.h"
#include "ps/policy/worker_clocks.h"

namespace syncopate::ps {

class ConsistencyState {
 public:
  // `members` must outlive this object.
  ConsistencyState(const Consistency& consistency, const Membership& members);

  // Sets the clocks that workers go on with after a restart. What a rule keeps beside them begins anew.
  void restore(const std::vector<std::int64_t>& clocks);
  // Takes the facts of a push that was accepted.
  void on_push(const Step& step);
  // Forgets the last push of a worker, which was received, and will not be applied.
  void undo_push(int worker) { clocks_.set(worker, clocks_.of(worker) - 1); }

  // Returns the number of pushes received from the worker.
  std::int64_t clock(int worker) const { return clocks_.of(worker); }
  // Returns whether the worker leads the slowest live worker by no more than it may.
  bool may_respond(int worker) const;
  // Returns what decides, besides what a worker has pushed itself, whether it may get its response.
  std::int64_t gate() const { return bound_ ? clocks_.slowest() : 0; }
  // Returns whether no response may go to `worker` before `other` has pushed again.
  bool waits_for(int worker, int other) const;

 private:
  WorkerClocks clocks_;
  std::unique_ptr<StalenessBound> bound_;  // null: none
};

}  // namespace syncopate::ps
