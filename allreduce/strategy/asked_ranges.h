// AskedRanges: what the passes of a step ask for, in order. The step before tells what comes next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "common/param_layout.h"

namespace syncopate::allreduce {

class AskedRanges {
 public:
  void begin_step() { asked_ = 0; }

  // A pass asks for `range`. Returns it, and behind it what comes next, up to so many bytes; at least the next one,
  // unless it is 0. Valid until the next call.
  std::span<const Range> ask(Range range, std::size_t bytes_ahead) {
    ranges_.resize(std::max(ranges_.size(), asked_ + 1));
    ranges_[asked_] = range;
    std::size_t end = ++asked_;
    for (std::size_t ahead = 0; end < ranges_.size() && ahead < bytes_ahead; ++end) {
      if (ranges_[end] != range) ahead += ranges_[end].size() * sizeof(float);
    }
    return std::span(ranges_).subspan(asked_ - 1, end - asked_ + 1);
  }

 private:
  std::vector<Range> ranges_;  // of this step, and behind them those of the one before
  std::size_t asked_ = 0;      // how many of them this step has
};

}  // namespace syncopate::allreduce
