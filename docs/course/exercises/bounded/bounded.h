// Exercise: bounded staleness, also called stale synchronous parallel (Ho et al., "More effective distributed ML via a
// stale synchronous parallel parameter server", 2013, section 2). Yours to write is bounded.cc.
//
// A worker pushes its gradient, then waits for the server's answer, then begins its next step. The server holds the
// answer back while the worker is more than `bound` pushes ahead of the slowest worker that still trains.
#pragma once

#include <cstdint>
#include <memory>

namespace syncopate::course {

class StalenessRule {
 public:
  virtual ~StalenessRule() = default;
  // Takes a push of the worker, which waits for its answer from now on.
  virtual void on_push(int worker) = 0;
  // The worker will never push again: it has finished, or is lost. Nobody waits for it.
  virtual void on_leave(int worker) = 0;
  // Returns whether a worker that has pushed and still trains may get its answer now.
  virtual bool may_answer(int worker) const = 0;
};

// Returns the rule for workers 0 to `workers` - 1, who have pushed nothing yet. There is at least one worker, and
// `bound` is at least 0.
std::unique_ptr<StalenessRule> make_bounded_staleness(int workers, std::int64_t bound);

}  // namespace syncopate::course
