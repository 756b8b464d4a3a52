#include "experiments/lab/report/recovery_times.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using std::chrono::milliseconds;

TimePoint at(int ms) { return TimePoint(milliseconds(ms)); }

// Steps that end at these times, each begun where the last one ended.
std::vector<StepRecord> steps(const std::vector<int>& ends) {
  std::vector<StepRecord> steps;
  int begin = 0;
  for (const int end : ends) {
    StepRecord step;
    step.end = at(end);
    step.total = milliseconds(end - begin);
    steps.push_back(step);
    begin = end;
  }
  return steps;
}

RecoveryTimes recovery(TimePoint fault, const std::vector<std::vector<StepRecord>>& workers) {
  std::vector<WorkerSteps> of_workers;
  for (const std::vector<StepRecord>& steps : workers) of_workers.push_back({.steps = steps});
  return recovery_after(fault, of_workers);
}

TEST(RecoveryTimes, AreThoseOfTheFirstStepsThatWereBegunAfterTheFault) {
  const RecoveryTimes times = recovery(at(15), {steps({10, 20, 30}), steps({12, 300, 330}), steps({10})});
  EXPECT_EQ(times.first, milliseconds(15)) << "the step to 20 was under way";
  EXPECT_EQ(times.all, milliseconds(315)) << "the last worker is lost";
}

TEST(RecoveryTimes, AreNoneWhereNobodyGoesOn) {
  const RecoveryTimes times = recovery(at(25), {steps({10, 20, 30}), {}});
  EXPECT_FALSE(times.first);
  EXPECT_FALSE(times.all);
}

TEST(RecoveryTimes, CountAStepThatIsBegunWithTheFault) {
  EXPECT_EQ(recovery(at(20), {steps({10, 20, 30})}).first, milliseconds(10));
}

}  // namespace
}  // namespace syncopate::experiments
