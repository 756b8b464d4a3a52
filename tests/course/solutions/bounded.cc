// A right solution of the exercise.
#include "docs/course/exercises/bounded/bounded.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace syncopate::course {
namespace {

class Rule : public StalenessRule {
 public:
  Rule(int workers, std::int64_t bound) : pushes_(static_cast<std::size_t>(workers)), bound_(bound) {}

  void on_push(int worker) override { ++pushes_[static_cast<std::size_t>(worker)]; }
  // As if it were ahead of everybody.
  void on_leave(int worker) override { pushes_[static_cast<std::size_t>(worker)] = kLeft; }
  bool may_answer(int worker) const override {
    return pushes_[static_cast<std::size_t>(worker)] - *std::ranges::min_element(pushes_) <= bound_;
  }

 private:
  static constexpr std::int64_t kLeft = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> pushes_;
  std::int64_t bound_;
};

}  // namespace

std::unique_ptr<StalenessRule> make_bounded_staleness(int workers, std::int64_t bound) {
  return std::make_unique<Rule>(workers, bound);
}

}  // namespace syncopate::course
