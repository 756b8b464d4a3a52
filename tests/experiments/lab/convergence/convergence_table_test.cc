#include "experiments/lab/convergence/convergence_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "experiments/lab/convergence/convergence_files.h"
#include "experiments/lab/convergence/convergence_text.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ConvergenceKind, FollowsFromThePartOfTheWayFromChanceToTheReference) {
  // The way is 0.8: nine tenths of it end at 0.82, a third at 0.3667.
  EXPECT_EQ(convergence_of(0.95, 0.9), Convergence::kLearns);
  EXPECT_EQ(convergence_of(0.821, 0.9), Convergence::kLearns);
  EXPECT_EQ(convergence_of(0.819, 0.9), Convergence::kFallsShort);
  EXPECT_EQ(convergence_of(0.367, 0.9), Convergence::kFallsShort);
  EXPECT_EQ(convergence_of(0.366, 0.9), Convergence::kCollapses);
  EXPECT_EQ(convergence_of(0.1, 0.9), Convergence::kCollapses);
}

TEST(ConvergenceKind, IsNamedOnceHoweverOftenItComes) {
  const std::array kinds = {Convergence::kCollapses, Convergence::kLearns, Convergence::kCollapses};
  EXPECT_EQ(kinds_text(kinds), "learns, collapses");
  EXPECT_EQ(kinds_text({}), "");
}

// A reference, one that collapses there and here, one that does with two of three seeds, and one that does not here.
ReproducedConvergence four_settings() {
  const PublishedConvergence learns{"~18", 0.82, Convergence::kLearns};
  const PublishedConvergence fails{"90 (fails)", 0.1, Convergence::kCollapses};
  ReproducedConvergence reproduced{.table = {.name = "a-table",
                                             .what = "some fail",
                                             .source = "somebody, \"a paper\"",
                                             .unit = "test error, %",
                                             .x_label = "workers",
                                             .ours = "small",
                                             .left_out = "",
                                             .settings = {}},
                                   .measured = {}};
  for (const char* name : {"reference", "fails", "varies", "learns here"}) {
    reproduced.table.settings.push_back({.name = name,
                                         .series = "a series",
                                         .x = static_cast<double>(reproduced.table.settings.size()),
                                         .published = {reproduced.table.settings.empty() ? learns : fails},
                                         .flags = {"--mode=ps", "--workers=2"}});
  }
  reproduced.measured = {{{0.9, 0.92, 0.88}, 0}, {{0.1, 0.11, 0.12}, 3}, {{0.1, 0.5, 0.1}, 3}, {{0.9, 0.9, 0.9}, 3}};
  return reproduced;
}

TEST(ConvergenceVerdict, CountsTheSeedsOfAKindThatTheSourceHas) {
  const ReproducedConvergence reproduced = four_settings();
  EXPECT_EQ(text_of(verdict_of(reproduced, 0)), "reproduced");
  EXPECT_EQ(text_of(verdict_of(reproduced, 1)), "reproduced");
  EXPECT_EQ(text_of(verdict_of(reproduced, 2)), "with 2 of 3 seeds");
  EXPECT_EQ(text_of(verdict_of(reproduced, 3)), "not reproduced");
  const ConvergenceVerdict verdict = verdict_of(reproduced, 2);
  EXPECT_NEAR(verdict.mean, 0.7 / 3, 1e-12);
  EXPECT_EQ(verdict.least, 0.1);
  EXPECT_EQ(verdict.most, 0.5);
  EXPECT_THAT(verdict.kinds, ElementsAre(Convergence::kCollapses, Convergence::kFallsShort, Convergence::kCollapses));
}

TEST(ConvergenceVerdict, LetsAReferenceThatLearnsNothingSayNothingGoodOfOthers) {
  ReproducedConvergence reproduced = four_settings();
  reproduced.measured[0].accuracies = reproduced.measured[3].accuracies = {0.1, 0.1, 0.1};
  EXPECT_EQ(text_of(verdict_of(reproduced, 0)), "not reproduced");
  EXPECT_EQ(text_of(verdict_of(reproduced, 3)), "reproduced");
}

TEST(ConvergenceText, HasASettingARowAndCountsThoseThatAreReproduced) {
  const std::string text = convergence_text(four_settings());
  EXPECT_THAT(text, testing::ContainsRegex("\nfails +90 \\(fails\\) +collapses\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\nfails +11\\.0 +10\\.0 to 12\\.0 +3\\.0\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\nfails +collapses +reproduced\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\nlearns here +learns +not reproduced\n"));
  EXPECT_THAT(text, HasSubstr("2 of 4 settings reproduced, each with all of 3 seeds."));
  EXPECT_THAT(text, testing::Not(HasSubstr("Left out")));
}

TEST(ConvergenceFiles, HaveARowForEachSeedWithItsCommandAndItsSource) {
  const std::string csv = convergence_csv({four_settings()});
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 4 * 3);
  EXPECT_THAT(
      csv, HasSubstr("\n\"a-table\",\"varies\",\"90 (fails)\",\"collapses\",2,0.5,\"falls short\",3,\"with 2 of 3 "
                     "seeds\",\"./run_experiment --mode=ps --workers=2 --repeat=3\",\"somebody, \"\"a paper\"\"\"\n"));
}

TEST(ConvergenceFiles, ShowEachTableWithAChartItsRowsAndWhatIsLeftOut) {
  const std::string html = convergence_html({four_settings()}, {"no files of <those>"});
  EXPECT_THAT(html, HasSubstr("<h2 id=\"a-table\">"));
  EXPECT_THAT(html, HasSubstr("<figure class=\"chart\">"));
  EXPECT_THAT(html, HasSubstr("with 2 of 3 seeds"));
  EXPECT_THAT(html, HasSubstr("./run_experiment --mode=ps --workers=2 --repeat=3"));
  EXPECT_THAT(html, HasSubstr("no files of &lt;those&gt;"));
}

}  // namespace
}  // namespace syncopate::experiments
