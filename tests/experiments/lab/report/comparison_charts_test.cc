#include "experiments/lab/report/comparison_charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/experiments/lab/report/sample_comparison.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// The first chart whose title has `words`; empty where there is none.
std::string chart(const ComparisonReport& report, const std::string& words) {
  for (const std::string& svg : comparison_charts(report, figures_of(report))) {
    if (svg.substr(0, svg.find("</text>")).find(words) != std::string::npos) return svg;
  }
  return {};
}

ComparisonReport over_servers() {
  ComparisonReport report = sample_comparison(
      {sample_row("allreduce", {1000}), sample_row("ps:sync", "1", {500}), sample_row("ps:sync", "2", {700})});
  report.varied = {"servers"};
  return report;
}

TEST(ComparisonCharts, DrawEveryRowOverWhatWasVaried) {
  const std::string svg = chart(over_servers(), "samples/s of the whole job over servers");
  EXPECT_THAT(svg, AllOf(HasSubstr("<title>allreduce: 1000</title>"), HasSubstr("class=\"level\""),
                         HasSubstr("<title>ps:sync: 1, 500</title>"), HasSubstr("<title>ps:sync: 2, 700</title>")));
}

TEST(ComparisonCharts, DrawSpeedOverWorkersBesideLinearScaling) {
  const auto of = [](const char* workers, double speed) {
    ComparedRow row = sample_row("ps:sync", {speed});
    row.label += std::string(" workers=") + workers;
    row.values = {{"workers", workers}};
    return row;
  };
  ComparisonReport report = sample_comparison({of("1", 100), of("4", 390), of("64", 3000)});
  report.varied = {"workers"};
  const std::string svg = chart(report, "samples/s of the whole job over workers");
  EXPECT_THAT(svg, HasSubstr("linear from ps:sync at 1"));
  EXPECT_THAT(svg, HasSubstr("10k")) << "the axis reaches 64 times the speed of one, in powers of ten";
  EXPECT_THAT(chart(report, "MB of memory"), Not(HasSubstr("linear from")));
}

TEST(ComparisonCharts, DrawNothingOverAnOptionThatIsNoNumber) {
  ComparisonReport report =
      sample_comparison({sample_row("ps:sync", "tensor", {500}), sample_row("ps:sync", "hash", {700})});
  report.varied = {"servers"};
  EXPECT_EQ(chart(report, "over servers"), "");
}

TEST(ComparisonCharts, ShowWhatTravelsOnlyWhereItDiffersAndThenEveryRow) {
  ComparisonReport report = over_servers();
  EXPECT_EQ(chart(report, "What travels"), "");
  report.rows[1].rounds[0]->bytes_out_per_step /= 4;
  report.rows[0].rounds[0]->bytes_out_per_step = 0;  // as local's
  report.rows[0].rounds[0]->bytes_in_per_step = 0;
  EXPECT_THAT(chart(report, "What travels, and how fast"),
              AllOf(HasSubstr("allreduce: 0, 1000"), HasSubstr("ps:sync servers=2")));
}

TEST(ComparisonCharts, GiveAModeOneColourInAllOfThem) {
  ComparisonReport report = over_servers();
  report.rows[1].rounds[0]->bytes_out_per_step /= 4;
  // Okabe and Ito's first two: allreduce is blue, ps:sync vermilion.
  for (const std::string& svg : comparison_charts(report, figures_of(report))) {
    for (std::size_t at = svg.find("class=\"mark\""); at != std::string::npos;
         at = svg.find("class=\"mark\"", at + 1)) {
      const std::string mark = svg.substr(at, svg.find("</path>", at) - at);
      const bool is_allreduce = mark.find("<title>allreduce") != std::string::npos;
      EXPECT_THAT(mark, HasSubstr(is_allreduce ? "#0072B2" : "#D55E00"));
    }
  }
}

TEST(ComparisonCharts, ShowSpeedAsRatiosWithIntervals) {
  const ComparisonReport report = sample_comparison(
      {sample_row("local", {1000, 1010, 990, 1005, 995}), sample_row("ps:sync", {2000, 2030, 1990, 2000, 1985})});
  EXPECT_THAT(chart(report, "as a ratio to local"),
              AllOf(HasSubstr("with 95 % interval"), HasSubstr("class=\"interval\"")));
}

TEST(ComparisonCharts, ShowWhatCameOfTheRatesThatWereTried) {
  ComparisonReport report = over_servers();
  report.trials = {{"allreduce", 0.1, {0.5, 0.7}, {}}, {"allreduce", 1, {0.75, 0.8}, {}}};
  EXPECT_THAT(chart(report, "rates that were tried"),
              AllOf(HasSubstr("allreduce: 0.1, 0.6"), HasSubstr("class=\"interval\"")));
}

TEST(ComparisonCharts, AreNoneOfNothing) {
  EXPECT_TRUE(comparison_charts({}, figures_of({})).empty());
  const ComparisonReport empty = sample_comparison({sample_row("local", {}), sample_row("ps:sync", {})});
  EXPECT_TRUE(comparison_charts(empty, figures_of(empty)).empty());
}

}  // namespace
}  // namespace syncopate::experiments
