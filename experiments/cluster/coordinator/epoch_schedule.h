// EpochSchedule: decides whether each epoch is trained, in the same way for all workers. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace syncopate::experiments {

class EpochSchedule {
 public:
  struct Question {
    std::size_t process = 0;
    std::int64_t epoch = 0;
  };

  // Training ends with the epoch in which an evaluation's target_figure_of() reaches `target`; 0: with the last epoch.
  explicit EpochSchedule(double target) : target_(target) {}

  void on_evaluation(double figure) { target_reached_ = target_reached_ || (target_ > 0 && figure >= target_); }
  bool target_reached() const { return target_reached_; }

  // Decides once, when the first worker asks.
  bool go_on(std::int64_t epoch) { return decisions_.try_emplace(epoch, !target_reached_).first->second; }
  // Returns whether some worker was told not to train an epoch.
  bool has_ended() const {
    return std::ranges::any_of(decisions_, [](const auto& decision) { return !decision.second; });
  }

  // Training begins for all together: a worker that asks before that must wait.
  bool has_begun() const { return begun_; }
  void hold(const Question& question) { held_.push_back(question); }
  // Training begins. Returns the held questions in the order in which they were asked.
  std::vector<Question> begin() {
    begun_ = true;
    return std::exchange(held_, {});
  }
  // There is a new membership epoch: its members will ask again.
  void begin_membership() { held_.clear(); }

 private:
  const double target_;
  bool target_reached_ = false;
  bool begun_ = false;
  std::map<std::int64_t, bool> decisions_;  // by epoch
  std::vector<Question> held_;
};

}  // namespace syncopate::experiments
