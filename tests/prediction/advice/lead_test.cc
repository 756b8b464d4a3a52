#include "prediction/advice/lead.h"

#include <gtest/gtest.h>

namespace syncopate::prediction {
namespace {

// Says which stretches are wanted and which are there.
std::string shown(const std::vector<Stretch>& stretches) {
  std::string text;
  for (const Stretch& stretch : stretches) {
    const char* leads[] = {"first", "neither", "second"};
    text += std::to_string(static_cast<int>(stretch.from)) + "-" + std::to_string(static_cast<int>(stretch.to)) + " " +
            leads[static_cast<int>(stretch.lead)] + "; ";
  }
  return text;
}

TEST(Lead, IsClaimedOnlyBeyondBothErrors) {
  EXPECT_EQ(lead({100, 101}, {}), Lead::kFirst);
  EXPECT_EQ(lead({101, 100}, {}), Lead::kSecond);
  EXPECT_EQ(lead({100, 100}, {}), Lead::kNeither);
  // With errors of 10 and 20 %, the first is at most 100 / 0.9 and the second at least x / 1.2: from 133.3 on.
  EXPECT_EQ(lead({100, 133}, {0.1, 0.2}), Lead::kNeither);
  EXPECT_EQ(lead({100, 134}, {0.1, 0.2}), Lead::kFirst);
  // The other way round: the second is at most 100 / 0.8 and the first at least x / 1.1: from 137.5 on.
  EXPECT_EQ(lead({137, 100}, {0.1, 0.2}), Lead::kNeither);
  EXPECT_EQ(lead({138, 100}, {0.1, 0.2}), Lead::kSecond);
}

TEST(Lead, HasItsStretchesBetweenTheValuesWhereItChanges) {
  // The first takes 1, the second 100 / x: they cross at 100, and differ by a half at 100 / 1.5 and 150.
  const auto at = [](double value) { return Scores{1, 100 / value}; };
  EXPECT_EQ(shown(stretches(at, 1, 1000, {})), "1-100 first; 100-1000 second; ");
  const std::vector<Stretch> with_errors = stretches(at, 1, 1000, {0.2, 0.2});
  ASSERT_EQ(with_errors.size(), 3u);
  EXPECT_NEAR(with_errors[1].from, 100 / 1.5, 1e-3);
  EXPECT_NEAR(with_errors[1].to, 100 * 1.5, 1e-3);
  EXPECT_EQ(with_errors[1].lead, Lead::kNeither);
  EXPECT_EQ(with_errors[1].to, with_errors[2].from);
  EXPECT_EQ(shown(stretches(at, 1, 50, {})), "1-50 first; ");
}

TEST(Lead, HasItsStretchesAmongWholeNumbers) {
  const auto at = [](int number) { return Scores{10, number < 10 ? 9.0 : 11.0}; };
  EXPECT_EQ(shown(whole_stretches(at, {1, 2, 4, 8, 16, 32}, {})), "1-9 second; 10-32 first; ");
  EXPECT_EQ(shown(whole_stretches(at, {12}, {})), "12-12 first; ");
  EXPECT_EQ(shown(whole_stretches(at, {1, 16}, {0.2, 0.2})), "1-16 neither; ");
}

TEST(Lead, IsFoundBetweenTheNumbersThatAreAsked) {
  const auto at = [](int number) { return Scores{10, static_cast<double>(number)}; };
  EXPECT_EQ(shown(whole_stretches(at, {1, 2, 4, 8, 10, 16}, {})), "1-9 second; 10-10 neither; 11-16 first; ");
}

}  // namespace
}  // namespace syncopate::prediction
