// How long the rest of a comparison will take, by how long its runs took so far. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace syncopate::experiments {

class TimeLeft {
 public:
  // `runs`: how many runs of each row are ahead.
  explicit TimeLeft(std::vector<std::size_t> runs) : ahead_(std::move(runs)), took_(ahead_.size()) {}

  // A run of `row` that was ahead has ended, after so many seconds.
  void ran(std::size_t row, double seconds);
  // No run of `row` is ahead any more.
  void leave_out(std::size_t row) { ahead_[row] = 0; }

  // Each row's runs take the mean of those that it has had; one that has had none takes the mean of all. Empty before
  // the first.
  std::optional<double> seconds() const;

 private:
  struct Took {
    double seconds = 0;
    std::size_t runs = 0;
  };

  std::vector<std::size_t> ahead_;  // by row
  std::vector<Took> took_;          // likewise
};

}  // namespace syncopate::experiments
