#include "ps/policy/rate_agreement.h"

#include <gtest/gtest.h>

namespace syncopate::ps {
namespace {

TEST(RateAgreement, FindsNothingWhereAllPushesOfAStepHaveOneRate) {
  RateAgreement agreement;
  for (std::int64_t clock = 1; clock < 1000; ++clock) {
    const double rate = 1.0 / static_cast<double>(clock);
    for (int worker = 0; worker < 3; ++worker) {
      agreement.on_push(worker, clock, rate);
      EXPECT_FALSE(agreement.difference(worker, clock, rate));
    }
  }
}

TEST(RateAgreement, TellsEachWorkerOfAnotherThatDiffers) {
  RateAgreement agreement;
  agreement.on_push(2, 7, 0.1);
  EXPECT_FALSE(agreement.difference(2, 7, 0.1)) << "nobody else has pushed";
  agreement.on_push(0, 7, 0.1);
  agreement.on_push(1, 7, 0.2);
  const auto of_the_first = agreement.difference(0, 7, 0.1), of_the_other = agreement.difference(1, 7, 0.2);
  ASSERT_TRUE(of_the_first && of_the_other);
  EXPECT_EQ(of_the_first->other.worker, 1);
  EXPECT_EQ(of_the_first->other.rate, 0.2);
  EXPECT_EQ(of_the_other->other.worker, 2);
  EXPECT_EQ(of_the_other->other.rate, 0.1);
  EXPECT_EQ(of_the_other->own.worker, 1);
}

TEST(RateAgreement, ComparesStepsOfWorkersThatRunApart) {
  RateAgreement agreement;
  for (std::int64_t clock = 1; clock <= 20; ++clock) agreement.on_push(0, clock, clock < 10 ? 0.1 : 0.05);
  agreement.on_push(1, 9, 0.1);
  EXPECT_FALSE(agreement.difference(1, 9, 0.1)) << "the same as the other had in its step 9";
  agreement.on_push(1, 10, 0.1);
  EXPECT_TRUE(agreement.difference(1, 10, 0.1));
}

TEST(RateAgreement, ForgetsWhatIsLongPast) {
  RateAgreement agreement;
  agreement.on_push(0, 1, 0.1);
  agreement.on_push(0, 1 + RateAgreement::kRemembered, 0.1);
  agreement.on_push(1, 1, 0.2);
  EXPECT_FALSE(agreement.difference(1, 1, 0.2));
}

}  // namespace
}  // namespace syncopate::ps
