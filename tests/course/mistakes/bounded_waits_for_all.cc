// Waits for who has left: fails WaitsForNobodyWhoHasLeft
#include <algorithm>
#include <vector>

#include "docs/course/exercises/bounded/bounded.h"

namespace syncopate::course {
namespace {

class Rule : public StalenessRule {
 public:
  Rule(int workers, std::int64_t bound) : pushes_(static_cast<std::size_t>(workers)), bound_(bound) {}

  void on_push(int worker) override { ++pushes_[static_cast<std::size_t>(worker)]; }
  void on_leave(int) override {}
  bool may_answer(int worker) const override {
    return pushes_[static_cast<std::size_t>(worker)] - *std::ranges::min_element(pushes_) <= bound_;
  }

 private:
  std::vector<std::int64_t> pushes_;
  std::int64_t bound_;
};

}  // namespace

std::unique_ptr<StalenessRule> make_bounded_staleness(int workers, std::int64_t bound) {
  return std::make_unique<Rule>(workers, bound);
}

}  // namespace syncopate::course
