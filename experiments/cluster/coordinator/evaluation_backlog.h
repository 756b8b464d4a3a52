// EvaluationBacklog: the snapshots that wait to be evaluated, whether there is space for another, and which are never
// evaluated. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::experiments {

class EvaluationBacklog {
 public:
  // With more than this many waiting, points are left out, so that evaluation does not continue long after training.
  static constexpr std::size_t kMostWaiting = 100;

  // This many bytes of weights may wait, but two snapshots always may. The final weights wait even if there is no
  // space.
  explicit EvaluationBacklog(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // The snapshot of point `point`, or of the final weights, has arrived. It waits, or is missing if nobody evaluates
  // any more.
  void on_snapshot(std::int64_t point, bool final, std::size_t bytes);
  // Returns false if no such snapshot waited: it was evaluated before, or never arrived.
  bool on_evaluation(std::int64_t point, bool final);
  // From now on nobody evaluates. Waiting snapshots become missing.
  void give_up();
  bool given_up() const { return given_up_; }
  bool is_final_missing() const { return is_final_missing_; }

  std::size_t waiting() const { return waiting_.size(); }
  bool has_room() const {
    return waiting() < 2 || (waiting() < kMostWaiting && (waiting() + 1) * bytes_of_each_ <= most_bytes_);
  }

  // Return what waits, and what arrived and is missing: "1 snapshot", "3 snapshots and the final weights". Empty for
  // nothing.
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
  std::size_t missing_ = 0;  // without the final weights
  bool is_final_missing_ = false;
  bool given_up_ = false;
};

}  // namespace syncopate::experiments
