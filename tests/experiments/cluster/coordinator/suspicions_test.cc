#include "experiments/cluster/coordinator/suspicions.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using std::literals::chrono_literals::operator""s;

constexpr TimePoint kSuspectedFrom{100s};

Suspicion suspicion(std::size_t process, Duration until, ExitCode code = ExitCode::kProcessLost) {
  return {.process = process, .verdict = {code, ""}, .until = kSuspectedFrom + until};
}

TEST(Suspicions, AreActedOnInTheOrderInWhichTheyArose) {
  Suspicions suspicions;
  suspicions.add(suspicion(3, 2s));
  suspicions.add(suspicion(1, 1s));
  EXPECT_FALSE(suspicions.take_due(kSuspectedFrom + 1s)) << "the first may explain the second";
  EXPECT_EQ(suspicions.take_due(kSuspectedFrom + 2s)->process, 3u);
  EXPECT_EQ(suspicions.take_due(kSuspectedFrom + 2s)->process, 1u);
  EXPECT_FALSE(suspicions.take_due(kSuspectedFrom + 9s));
  EXPECT_TRUE(suspicions.empty());
}

TEST(Suspicions, KnowWhetherAnybodyHasPassedADeadline) {
  Suspicions suspicions;
  suspicions.add(suspicion(0, 1s));
  EXPECT_FALSE(suspicions.has_passed_deadline());
  suspicions.add(suspicion(1, 1s, ExitCode::kTimeout));
  EXPECT_TRUE(suspicions.has_passed_deadline());
}

TEST(Suspicions, AreForgottenOnceSomethingExplainsThem) {
  Suspicions suspicions;
  Suspicion trouble = suspicion(0, 1s), carried = suspicion(1, 1s);
  trouble.is_trouble = true;
  carried.may_be_of_carrier = true;
  suspicions.add(trouble);
  suspicions.add(carried);
  suspicions.forget_troubles();
  EXPECT_EQ(suspicions.take_due(kSuspectedFrom + 1s)->process, 1u);
  suspicions.add(carried);
  suspicions.forget_of_carrier();
  EXPECT_TRUE(suspicions.empty());
}

TEST(ProcessEnd, IsDescribedAsFarAsItIsKnown) {
  EXPECT_EQ(describe({.exit_code = {}, .signal = 9}), "was killed by signal 9 (Killed)");
  EXPECT_EQ(describe({.exit_code = 3, .signal = {}}), "ended with exit code 3");
  EXPECT_EQ(describe({.exit_code = 255, .signal = {}, .of_remote_shell = true}),
            "lost its remote shell, which ended with exit code 255");
  EXPECT_EQ(describe(ProcessEnd{}), "is gone");
  EXPECT_TRUE(ProcessEnd{}.is_known_to_carrier_alone());
}

}  // namespace
}  // namespace syncopate::experiments
