// EvaluationBacklog: snapshots that wait to be evaluated, whether there is room for another, and what is not evaluated
// at all. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::experiments {

class EvaluationBacklog {
 public:
  // A run must not go on for much longer than its training only to be evaluated: beyond so many, points are left out.
  static constexpr std::size_t kMostWaiting = 100;

  // So many bytes of weights may wait; two snapshots may in any case. The final weights wait whether or not there is
  // room.
  explicit EvaluationBacklog(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // That of point `point` has come, or of the final weights: it waits, or is missing where nobody evaluates any more.
  void on_snapshot(std::int64_t point, bool final, std::size_t bytes);
  // False where no such snapshot waited: it has been evaluated before, or never came.
  bool on_evaluation(std::int64_t point, bool final);
  // From now on nobody evaluates. What waits is missing.
  void give_up();
  bool given_up() const { return given_up_; }
  bool is_final_missing() const { return is_final_missing_; }

  std::size_t waiting() const { return waiting_.size(); }
  bool has_room() const {
    return waiting() < 2 || (waiting() < kMostWaiting && (waiting() + 1) * bytes_of_each_ <= most_bytes_);
  }

  // What waits, and what has come and is missing: "1 snapshot", "3 snapshots and the final weights". Empty for nothing.
  std::string waiting_text() const;
  std::string missing_text() const;

 private:
  struct Waiting {
    std::int64_t point = 0;
    bool final = false;
    bool operator==(const Waiting&) const = default;
  };

  const std::size_t most_bytes_;
  std::vector<Waiting> waiting_;
  std::size_t bytes_of_each_ = 0;
  std::size_t missing_ = 0;  // beside the final weights
  bool is_final_missing_ = false;
  bool given_up_ = false;
};

}  // namespace syncopate::experiments
