#include "experiments/lab/report/comparison_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "experiments/lab/report/comparison_words.h"
#include "tests/experiments/lab/report/sample_comparison.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(ComparisonText, ShowsRangesAndJudgesNothingBelowFiveRounds) {
  const std::string text =
      comparison_text(sample_comparison({sample_row("local", {1000, 1020}), sample_row("allreduce", {2020, 2020})}));
  EXPECT_THAT(text, HasSubstr("mean of 2 rounds [least .. most]; ratio to local round by round\n"));
  EXPECT_THAT(text, ContainsRegex("\nlocal +1,010 \\[1,000 \\.\\. 1,020\\] +1 +baseline\n"));
  EXPECT_THAT(text, ContainsRegex("\nlocal +1 min 59 s +2\\.0 %\nallreduce +59\\.4 s +0\\.0 %\n"));
  EXPECT_THAT(text, ContainsRegex("\nallreduce +2,020 \\[2,020 \\.\\. 2,020\\] +2\\.00x +not judged\n"));
  EXPECT_THAT(text,
              HasSubstr("Not judged: 2 rounds; from 5 on there are intervals and verdicts, and 15 (--repeat=15) "));
}

TEST(ComparisonText, ClaimsADifferenceOnlyOutsideItsInterval) {
  const std::string text = comparison_text(sample_comparison(
      {sample_row("local", {1000, 1010, 990, 1005, 995}), sample_row("allreduce", {2000, 2030, 1990, 2000, 1985}),
       sample_row("ps:sync", {1010, 990, 1000, 985, 1015}), sample_row("ps:async", {500, 503, 497, 502, 500})}));
  EXPECT_THAT(text, ContainsRegex("\nlocal +1,000 ± [0-9.]+ +1 +baseline"));
  EXPECT_THAT(text, ContainsRegex("\nallreduce +2,001 ± [0-9.]+ +2\\.00x \\[1\\.9[0-9], 2\\.0[0-9]\\] +faster"));
  EXPECT_THAT(text,
              ContainsRegex("\nps:sync +1,000 ± [0-9.]+ +1\\.00x \\[0\\.9[0-9], 1\\.0[0-9]\\] +no difference shown"));
  EXPECT_THAT(text, ContainsRegex("\nps:async +500 ± [0-9.]+ +0\\.50x \\[0\\.49, 0\\.51\\] +slower"));
  EXPECT_THAT(text, HasSubstr("1 in 20"));
}

TEST(ComparisonText, JudgesASimulationThatDrawsNothingAsExact) {
  ComparisonReport report =
      sample_comparison({sample_row("local", {1000, 1000}), sample_row("allreduce", {1000.1, 1000.1}),
                         sample_row("ps:sync", {1002, 1002}), sample_row("ps:async", {900, 900})});
  EXPECT_THAT(comparison_text(report), HasSubstr("Not judged: 2 rounds"));
  report.simulated = true;
  const ComparisonFigures figures = figures_of(report);
  EXPECT_EQ(figures.rows[1].speed.verdict, Verdict::kNoDifferenceShown);
  EXPECT_EQ(figures.rows[2].speed.verdict, Verdict::kHigher);
  EXPECT_EQ(figures.rows[3].speed.verdict, Verdict::kLower);
  EXPECT_THAT(comparison_text(report), HasSubstr("Judged as exact"));
  report.rows[0].rounds[1]->samples_per_second = 1001;
  EXPECT_EQ(figures_of(report).rows[3].speed.verdict, Verdict::kNotJudged) << "it draws something";
}

TEST(ComparisonText, EndsWithAnAnswer) {
  const auto answer = [](const ComparisonReport& report) {
    const std::string text = comparison_text(report);
    return text.substr(text.rfind("\nAnswer: ") + 1);
  };
  const ComparedRow slow = sample_row("local", {1000, 1010, 990, 1005, 995});
  const ComparedRow like = sample_row("ps:sync", {1010, 990, 1000, 985, 1015});
  const ComparedRow other = sample_row("ps:async", {990, 1005, 1010, 1000, 1000});
  const ComparedRow fast = sample_row("allreduce", {2000, 2030, 1990, 2000, 1985});
  EXPECT_THAT(answer(sample_comparison({slow, fast, like})),
              ContainsRegex("^Answer: allreduce is the fastest: (local|ps:sync) comes next, with 4[89]\\.?[0-9]* to "
                            "5[0-2]\\.?[0-9]* % fewer samples/s, over 5 rounds\\.\n$"));
  EXPECT_THAT(answer(sample_comparison({slow, like, other})),
              ContainsRegex("but no difference is shown from [a-z:]+ and [a-z:]+, over 5 rounds\\.\n$"));
  // A row that was stopped early is judged by nothing.
  const ComparedRow few = sample_row("ps:sync", {1010, 990});
  EXPECT_THAT(answer(sample_comparison({slow, fast, few})),
              AllOf(StartsWith("Answer: allreduce is the fastest of those judged: local comes next"),
                    EndsWith(" over 5 rounds; not judged, for too few rounds: ps:sync.\n")));
  EXPECT_EQ(answer(sample_comparison({fast, few})),
            "Answer: allreduce had the most samples/s, over 5 rounds; not judged, for too few rounds: ps:sync.\n");
  EXPECT_THAT(answer(sample_comparison({sample_row("local", {1000}), sample_row("allreduce", {2000})})),
              HasSubstr("Answer: allreduce had the most samples/s in 1 round, too few to say"));
  ComparisonReport apart = sample_comparison({slow, fast});
  apart.in_rounds = false;
  EXPECT_THAT(answer(apart), HasSubstr("in runs that did not take turns"));
}

TEST(ComparisonText, AnswersForASimulationOnlyWhereItDrawsNothing) {
  const auto answer = [](std::vector<ComparedRow> rows) {
    ComparisonReport report = sample_comparison(std::move(rows));
    report.simulated = true;
    return caveats(report, figures_of(report)).back();
  };
  EXPECT_EQ(answer({sample_row("local", {1000, 1000}), sample_row("allreduce", {2000, 2000})}),
            "Answer: allreduce is the fastest in this simulation; local comes next, with 50 % fewer samples/s.");
  EXPECT_EQ(answer({sample_row("local", {1999.9, 1999.9}), sample_row("allreduce", {2000, 2000}),
                    sample_row("ps:sync", {1999.8, 1999.8})}),
            "Answer: in this simulation allreduce, local and ps:sync are equally fast, within 0.1 %.");
  EXPECT_THAT(answer({sample_row("local", {1000, 1100}), sample_row("allreduce", {1050, 1060})}),
              HasSubstr("in 2 rounds of this simulation, too few to say"));
  EXPECT_THAT(answer({sample_row("local", {1000}), sample_row("allreduce", {2000})}),
              HasSubstr("in 1 round of this simulation, too few to say"));
}

TEST(ComparisonText, HasWhatAStepIsMadeOfAndNamesTheSteadyWindow) {
  const std::string text = comparison_text(sample_comparison({sample_row("local", {1000})}));
  EXPECT_THAT(text, HasSubstr("Window: where all workers train at once, after the warm-up"));
  EXPECT_THAT(text, ContainsRegex("mode +window samples/s +ms/step +wait % +MB/step\n"
                                  "local +1,250 +1\\.90 +25\\.0 +2\\.160\n\n"
                                  "mode +staleness +MB memory\nlocal +2\\.50 +100\n\n"
                                  "mode +goodput\nlocal +62\\.5 %\n"));
}

TEST(ComparisonText, ShowsTheTimeOfACodecAndTheFigureThatADataSetIsJudgedBy) {
  ComparedRow row = sample_row("ps:sync", {1000});
  row.rounds[0]->codec_ms = 0.25;
  row.rounds[0]->final_figures.auc = 0.8125;
  const std::string text = comparison_text(sample_comparison({row}));
  EXPECT_THAT(text, AllOf(HasSubstr("codec ms"), HasSubstr("AUC"), HasSubstr("0.250"), HasSubstr("0.8125")));
  EXPECT_THAT(text, Not(HasSubstr("accuracy")));
}

TEST(ComparisonText, ShowsTheRateOfARowAndWhatItComesToInOnePass) {
  ComparisonReport report = sample_comparison({sample_row("local", {1000})});
  report.rate_rule = "per-sample";
  EXPECT_THAT(comparison_text(report),
              AllOf(HasSubstr("; rates per-sample\n"), ContainsRegex("\nlocal +0\\.1 +10 +0\\.9731 +-\n"),
                    ContainsRegex("\nlocal +baseline +0\\.1250\n")));
}

TEST(ComparisonText, SaysHowManyRoundsReachedTheTargetAndHowFarApartEvaluationsLay) {
  ComparisonReport report =
      sample_comparison({sample_row("local", {1000, 1000}), sample_row("ps:async", {1000, 1000})});
  report.target = 0.9;
  report.rows[0].rounds[0]->seconds_to_target = 1.5;
  report.rows[0].rounds[1]->seconds_to_target = 1.7;
  report.rows[0].rounds[0]->seconds_to_target_resolution = report.rows[0].rounds[1]->seconds_to_target_resolution = 1;
  EXPECT_THAT(comparison_text(report),
              AllOf(ContainsRegex("\nlocal +2 of 2 +1\\.6 \\[1\\.5 \\.\\. 1\\.7\\] +1 s\nps:async +0 of 2 +- +-\n"),
                    ContainsRegex("\nmode +ratio +verdict\nlocal +1 +baseline\nps:async +- +-\n")));
}

TEST(ComparisonText, ShowsTheRatesThatWereTriedAndWhichDiverged) {
  ComparisonReport report = sample_comparison({});
  const double none = std::numeric_limits<double>::quiet_NaN();
  report.trials = {{"local", 0.1, {0.5, 0.7}, {}}, {"local", 1, {none, 0.1}, {}}, {"ps:async", 0.1, {0.25}, {}}};
  EXPECT_THAT(comparison_text(report),
              HasSubstr("mode         0.1         1\nlocal     0.6000  diverged\nps:async  0.2500         -\n"));
}

TEST(ComparisonText, ShowsWhatThereIsOfRoundsThatDidNotEnd) {
  ComparisonReport report = sample_comparison(
      {sample_row("local", {1000, 1000}), sample_row("allreduce", {2000}), sample_row("ps:sync", {})});
  report.rows[1].rounds.push_back(std::nullopt);
  report.outcome = "interrupted in round 2 of 5";
  report.left_out = {"ps:async: left out, no servers"};
  const std::string text = comparison_text(report);
  EXPECT_THAT(text, HasSubstr("mean of 2 rounds or fewer"));
  EXPECT_THAT(text, ContainsRegex("\nallreduce +2,000 +2\\.00x +not judged"));
  EXPECT_THAT(text, ContainsRegex("\nps:sync +- +- +not judged\n"));
  EXPECT_THAT(text,
              AllOf(HasSubstr("\nNot completed: interrupted in round 2 of 5\n"), HasSubstr("\nps:async: left out")));
}

TEST(ComparisonText, JudgesNoRunsThatDidNotRunInTurns) {
  ComparisonReport report =
      sample_comparison({sample_row("a", std::vector<double>(6, 1000)), sample_row("b", std::vector<double>(6, 2000))});
  report.in_rounds = false;
  const std::string text = comparison_text(report);
  EXPECT_THAT(text, ContainsRegex("\nb +2,000 ± 0 +2\\.00x +not judged"));
  EXPECT_THAT(text, HasSubstr("Not judged: finished runs did not run in turns"));
}

TEST(ComparisonText, SaysInWhichRunsTheMachineWasBusyWithOthers) {
  ComparisonReport report = sample_comparison({sample_row("local", {1000, 1000}), sample_row("ps:sync", {900, 900})});
  report.rows[0].rounds[1]->machine = MachineLoad{.seconds = 10, .cores = 2, .workers = 1, .own = 0.5, .others = 0.1};
  report.rows[1].rounds[0]->machine = MachineLoad{.seconds = 10, .cores = 2, .workers = 2, .own = 0.5, .others = 0.25};
  report.rows[1].rounds[1]->machine = MachineLoad{.seconds = 10, .cores = 2, .workers = 2, .own = 0.9, .others = 0.01};
  EXPECT_THAT(comparison_text(report),
              HasSubstr("In 2 of 3 runs, at worst in ps:sync, round 1: other processes used 25 % of the cores"));
}

// A terminal is 80 to 120 columns wide; titles may wrap.
TEST(ComparisonText, HasRowsThatFitATerminal) {
  const std::vector<double> speeds = {1'234'567, 1'240'000, 1'238'000, 1'241'000, 1'229'000};
  ComparisonReport report =
      sample_comparison({sample_row("allreduce:ring", speeds), sample_row("ps:bounded:4", speeds)});
  report.target = 0.9;
  std::istringstream lines(comparison_text(report));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("ps:bounded") || line.starts_with("mode")) {
      EXPECT_LE(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }), 80) << line;
    }
  }
}

}  // namespace
}  // namespace syncopate::experiments
