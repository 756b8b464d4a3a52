// StalenessBound: by how many pushes a worker may lead the slowest one, at one chunk or table, and still get a
// response. Pure: it never looks at a clock. One thread.
//
// A worker that does not lead must always get its response: every bound is at least 0. So the slowest worker goes on,
// whatever becomes of the others.
#pragma once

#include <cstdint>

#include "ps/policy/worker_clocks.h"

namespace syncopate::ps {

class StalenessBound {
 public:
  virtual ~StalenessBound() = default;
  // Takes an accepted push, which `clocks` counts already.
  virtual void on_push(const Step& step, const WorkerClocks& clocks) = 0;
  // Returns the bound of `worker`, whose last push is that of on_push.
  virtual std::int64_t of(int worker) const = 0;
};

// The same bound at all times (stale synchronous parallel, Ho et al. 2013, section 2).
class FixedBound : public StalenessBound {
 public:
  explicit FixedBound(std::int64_t bound) : bound_(bound) {}
  void on_push(const Step&, const WorkerClocks&) override {}
  std::int64_t of(int) const override { return bound_; }

 private:
  std::int64_t bound_;
};

}  // namespace syncopate::ps
