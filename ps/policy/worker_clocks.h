// WorkerClocks: how many pushes each worker has made to one chunk or table. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/clock.h"
#include "ps/policy/membership.h"

namespace syncopate::ps {

// The facts of one step of a worker that a rule decides by, apart from what the push carries.
struct Step {
  int worker = 0;
  std::int64_t clock = 0;  // pushes of this worker to this chunk or table, this one included
  double learning_rate = 0;
  TimePoint arrived{};  // when its push arrived at the server that decides
};

class WorkerClocks {
 public:
  // `members` must outlive this object.
  explicit WorkerClocks(const Membership& members)
      : members_(&members), clocks_(static_cast<std::size_t>(members.workers())) {}

  std::int64_t of(int worker) const { return clocks_[static_cast<std::size_t>(worker)]; }
  void set(int worker, std::int64_t clock) { clocks_[static_cast<std::size_t>(worker)] = clock; }
  int workers() const { return members_->workers(); }
  bool is_live(int worker) const { return members_->is_live(worker); }

  // Returns the least clock of all live workers; the largest number if there are none.
  std::int64_t slowest() const {
    std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
    for (int i = 0; i < workers(); ++i) {
      if (is_live(i)) slowest = std::min(slowest, of(i));
    }
    return slowest;
  }

 private:
  const Membership* members_;
  std::vector<std::int64_t> clocks_;
};

}  // namespace syncopate::ps
