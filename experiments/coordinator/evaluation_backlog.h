// EvaluationBacklog: snapshots that wait to be evaluated, and whether there is room for another. Pure.
#pragma once

#include <cstddef>

namespace syncopate::experiments {

class EvaluationBacklog {
 public:
  // So many bytes of weights may wait; two snapshots may in any case.
  explicit EvaluationBacklog(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // One has come, of `bytes`.
  void on_snapshot(std::size_t bytes) {
    ++waiting_;
    bytes_of_each_ = bytes;
  }
  void on_evaluation() {
    if (waiting_ > 0) --waiting_;
  }

  std::size_t waiting() const { return waiting_; }
  bool has_room() const { return waiting_ < 2 || (waiting_ + 1) * bytes_of_each_ <= most_bytes_; }

 private:
  const std::size_t most_bytes_;
  std::size_t waiting_ = 0;
  std::size_t bytes_of_each_ = 0;
};

}  // namespace syncopate::experiments
