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
  void set(int worker, std::int64_t clock) {
    std::int64_t& own = clocks_[static_cast<std::size_t>(worker)];
    // The last of the slowest has gone on, or one has gone back.
    if (is_live(worker) && (clock < slowest_ || (own == slowest_ && clock > own && --slowest_workers_ == 0))) {
      is_known_ = false;
    }
    own = clock;
  }
  int workers() const { return members_->workers(); }
  bool is_live(int worker) const { return members_->is_live(worker); }

  // Returns the least clock of all live workers; the largest number if there are none.
  std::int64_t slowest() const {
    if (is_known_ && changes_ == members_->changes()) return slowest_;
    slowest_ = std::numeric_limits<std::int64_t>::max();
    for (int i = 0; i < workers(); ++i) {
      if (!is_live(i) || of(i) > slowest_) continue;
      slowest_workers_ = of(i) == slowest_ ? slowest_workers_ + 1 : 1;
      slowest_ = of(i);
    }
    changes_ = members_->changes();
    is_known_ = true;
    return slowest_;
  }

 private:
  const Membership* members_;
  std::vector<std::int64_t> clocks_;
  // The least clock, and of how many, once it has been looked for, since when no other worker has come or gone.
  mutable bool is_known_ = false;
  mutable std::int64_t changes_ = 0;
  mutable std::int64_t slowest_ = 0;
  mutable int slowest_workers_ = 0;
};

}  // namespace syncopate::ps
