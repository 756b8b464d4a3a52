// Consistency: may this worker's pull at this clock be answered yet? Pure.
//
// A worker's clock at a shard is the number of pushes that the shard has had from it. `async` answers at once;
// `bounded:k` (stale synchronous parallel, Ho et al. 2013, section 2) answers while the worker is at most k clocks
// ahead of the slowest; `sync` applies the mean of all workers' gradients as one update and answers all of them then.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate::ps {

class Consistency {
 public:
  enum class Kind { kSync, kBounded, kAsync };

  // "sync", "bounded:k" with k from 0 to 1000000, "async". Says what is wrong and what would be right.
  static Result<Consistency> parse(std::string_view text);

  Kind kind() const { return kind_; }
  std::int64_t bound() const { return bound_; }
  std::string to_string() const;

  // One update from all workers' gradients together, or one from each push.
  bool updates_together() const { return kind_ == Kind::kSync; }

  // `clock`: pushes had from the worker that pulls; `slowest`: the least clock of all workers that are still in the
  // job.
  bool may_answer(std::int64_t clock, std::int64_t slowest) const;

 private:
  Kind kind_ = Kind::kAsync;
  std::int64_t bound_ = 0;
};

}  // namespace syncopate::ps
