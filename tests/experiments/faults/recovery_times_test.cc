#include "experiments/faults/recovery_times.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using std::chrono::milliseconds;

TimePoint at(int ms) { return TimePoint(milliseconds(ms)); }

// A worker whose steps end at these times, each begun where the last one ended.
WorkerSteps worker(const std::vector<int>& ends) {
  WorkerSteps steps;
  int begin = 0;
  for (const int end : ends) {
    StepRecord step;
    step.end = at(end);
    step.total = milliseconds(end - begin);
    steps.steps.push_back(step);
    begin = end;
  }
  return steps;
}

TEST(RecoveryTimes, AreThoseOfTheFirstStepsThatWereBegunAfterTheFault) {
  const std::vector<WorkerSteps> workers{worker({10, 20, 30}), worker({12, 300, 330}), worker({10})};
  const RecoveryTimes times = recovery_after(at(15), workers);
  EXPECT_EQ(times.first, milliseconds(15)) << "the step to 20 was under way";
  EXPECT_EQ(times.all, milliseconds(315)) << "the last worker is lost";
}

TEST(RecoveryTimes, AreNoneWhereNobodyGoesOn) {
  const RecoveryTimes times = recovery_after(at(25), std::vector<WorkerSteps>{worker({10, 20, 30}), worker({})});
  EXPECT_FALSE(times.first);
  EXPECT_FALSE(times.all);
}

TEST(RecoveryTimes, CountAStepThatIsBegunWithTheFault) {
  EXPECT_EQ(recovery_after(at(20), std::vector<WorkerSteps>{worker({10, 20, 30})}).first, milliseconds(10));
}

}  // namespace
}  // namespace syncopate::experiments
