// EvaluationBacklog: snapshots that wait to be evaluated, whether there is room for another, and what is not evaluated
// at all. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace syncopate::experiments {

class EvaluationBacklog {
 public:
  // So many bytes of weights may wait; two snapshots may in any case. The final weights wait whether or not there is
  // room.
  explicit EvaluationBacklog(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // One of `epoch`, counted from zero, has come: it waits, or is missing where nobody evaluates any more.
  void on_snapshot(std::int64_t epoch, bool final, std::size_t bytes);
  // False where no such snapshot waited: it has been evaluated before, or never came.
  bool on_evaluation(std::int64_t epoch, bool final);
  // No snapshot is taken of this epoch.
  void leave_out(std::int64_t epoch) { missing_.insert(epoch); }
  // From now on nobody evaluates. What waits is missing.
  void give_up();
  bool given_up() const { return given_up_; }
  bool is_final_missing() const { return is_final_missing_; }

  std::size_t waiting() const { return waiting_.size(); }
  bool has_room() const { return waiting() < 2 || (waiting() + 1) * bytes_of_each_ <= most_bytes_; }

  // What waits, and what is missing, for a person, who counts epochs from one: "epoch 3", "epochs 3 and 5 to 7, and the
  // final weights". Empty for nothing.
  std::string waiting_text() const;
  std::string missing_text() const;

 private:
  struct Waiting {
    std::int64_t epoch = 0;
    bool final = false;
    bool operator==(const Waiting&) const = default;
  };

  const std::size_t most_bytes_;
  std::vector<Waiting> waiting_;
  std::size_t bytes_of_each_ = 0;
  std::set<std::int64_t> missing_;  // epochs
  bool is_final_missing_ = false;
  bool given_up_ = false;
};

}  // namespace syncopate::experiments
