// TimeLeft: estimates how long the rest of a comparison will take, from how long its runs took so far. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace syncopate::experiments {

class TimeLeft {
 public:
  // `runs` has, for each row, how many runs are ahead.
  explicit TimeLeft(std::vector<std::size_t> runs) : ahead_(std::move(runs)), took_(ahead_.size()) {}

  // A run of `row` has ended, after this many seconds.
  void ran(std::size_t row, double seconds);
  // `row` has no runs ahead any more.
  void leave_out(std::size_t row) { ahead_[row] = 0; }

  // Returns the estimate. Each row's runs take the mean of those it has had; a row without any takes the mean of all.
  // Empty before the first run.
  std::optional<double> seconds() const;

 private:
  struct Took {
    double seconds = 0;
    std::size_t runs = 0;
  };

  std::vector<std::size_t> ahead_;  // by row
  std::vector<Took> took_;          // by row
};

}  // namespace syncopate::experiments
