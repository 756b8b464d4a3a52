#include "docs/course/exercises/bounded/bounded.h"

namespace syncopate::course {
namespace {

class BoundedStaleness : public StalenessRule {
 public:
  BoundedStaleness(int workers, std::int64_t bound) {
    (void)workers;
    (void)bound;
  }

  void on_push(int worker) override { (void)worker; }
  void on_leave(int worker) override { (void)worker; }
  bool may_answer(int worker) const override {
    (void)worker;
    return false;
  }

 private:
  // What has to be remembered?
};

}  // namespace

std::unique_ptr<StalenessRule> make_bounded_staleness(int workers, std::int64_t bound) {
  return std::make_unique<BoundedStaleness>(workers, bound);
}

}  // namespace syncopate::course
