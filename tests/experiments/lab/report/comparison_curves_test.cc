#include "experiments/lab/report/comparison_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/experiments/lab/report/sample_comparison.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::SizeIs;

// A row whose training loss falls to 1, and that is evaluated in the middle and at the end of 1280 samples.
ComparedRow row_of_curves(const std::string& mode, const std::string& workers = "") {
  ComparedRow row = sample_row(mode, {100});
  if (!workers.empty()) row.values = {{"workers", workers}};
  if (!workers.empty()) row.label += " workers=" + workers;
  row.batch_size = 64;
  row.evals[0] = {{.samples_seen = 640, .training_seconds = 2, .accuracy = 0.5, .loss = 1.5},
                  {.samples_seen = 1280, .training_seconds = 4, .accuracy = 0.75, .loss = 0.8}};
  row.training = {{.seconds = 2, .steps = 10, .samples = 640, .loss = 2},
                  {.seconds = 4, .steps = 20, .samples = 1280, .loss = 1}};
  return row;
}

ComparisonReport over_workers(const std::vector<std::string>& workers) {
  ComparisonReport report = sample_comparison({});
  report.varied = {"workers"};
  for (const std::string& one : workers) {
    for (const char* mode : {"allreduce", "ps:sync"}) report.rows.push_back(row_of_curves(mode, one));
  }
  report.rows.push_back(row_of_curves("local"));
  return report;
}

std::map<std::string, Chart> curves_of(const ComparisonReport& report) {
  std::map<std::string, Chart> curves;
  for (const AnyChart& chart : comparison_curves(report, figures_of(report), Looks(report))) {
    if (has_something(chart)) curves[title_of(chart)] = std::get<Chart>(chart);
  }
  return curves;
}

std::vector<double> places_of(const ChartSeries& series) {
  std::vector<double> places;
  for (const ChartPoint& point : series.points) places.push_back(point.x);
  return places;
}

TEST(ComparisonCurves, CanBeDrawnOverTimeStepsAndSamples) {
  const ComparisonReport report = sample_comparison({row_of_curves("local"), row_of_curves("ps:async")});
  const std::map<std::string, Chart> curves = curves_of(report);
  ASSERT_THAT(curves, SizeIs(3)) << "training loss, loss and quality on the test set";
  for (const auto& [title, chart] : curves) {
    EXPECT_EQ(chart.view, "time") << title;
    ASSERT_THAT(chart.others, ElementsAre(Field(&ChartView::name, "steps"), Field(&ChartView::name, "samples")));
    EXPECT_THAT(chart.series, ElementsAre(Field(&ChartSeries::name, "local"), Field(&ChartSeries::name, "ps:async")));
    EXPECT_THAT(places_of(chart.series[1]), ElementsAre(2, 4)) << title;
    EXPECT_THAT(places_of(chart.others[0].series[1]), ElementsAre(10, 20)) << title;
    EXPECT_THAT(places_of(chart.others[1].series[1]), ElementsAre(640, 1280)) << title;
    EXPECT_NE(chart.series[0].colour, chart.series[1].colour);
  }
  EXPECT_EQ(curves.at("Training loss, means of batches").series[0].points[1].y, 1);
  EXPECT_EQ(curves.at("Loss on the test set").series[0].points[1].y, 0.8);
  EXPECT_EQ(curves.at("Quality on the test set").series[0].points[1].y, 0.75);
}

TEST(ComparisonCurves, DivideManyLinesIntoPartsOfTheSameValues) {
  const Chart loss = curves_of(over_workers({"1", "2", "4", "8"})).at("Loss on the test set");
  ASSERT_THAT(loss.others, SizeIs(3 * 4 - 1));
  EXPECT_EQ(loss.part, "workers=8") << "where most is done";
  EXPECT_EQ(loss.place, 3) << "in the order in which they were varied";
  EXPECT_THAT(loss.others[2], AllOf(Field(&ChartView::name, "time"), Field(&ChartView::part, "workers=4")));
  EXPECT_THAT(loss.others[3], AllOf(Field(&ChartView::name, "steps"), Field(&ChartView::part, "workers=1")));
  for (const ChartView& view : loss.others) {
    EXPECT_THAT(view.series, ElementsAre(Field(&ChartSeries::name, "allreduce"), Field(&ChartSeries::name, "ps:sync"),
                                         Field(&ChartSeries::name, "local")))
        << "local has no workers to vary, and stands in all";
  }
}

TEST(ComparisonCurves, PutARowBesideAllThatDifferInWhatHasNoEffectOnIt) {
  ComparisonReport report = over_workers({"2", "4"});
  report.varied = {"workers", "servers"};
  for (ComparedRow& row : report.rows) {
    if (row.mode == "ps:sync") row.values.emplace_back("servers", "1");
  }
  for (const char* workers : {"2", "4"}) {
    report.rows.push_back(row_of_curves("ps:sync", workers));
    report.rows.back().values.emplace_back("servers", "2");
  }
  const Chart loss = curves_of(report).at("Loss on the test set");
  std::vector<std::string> parts;
  for (const ChartView& view : loss.others) {
    if (view.name == "steps") parts.push_back(view.part);
    EXPECT_THAT(view.series, SizeIs(3)) << "allreduce, which has no servers, and local beside ps:sync";
  }
  EXPECT_THAT(parts,
              ElementsAre("workers=2 servers=1", "workers=4 servers=1", "workers=2 servers=2", "workers=4 servers=2"));
}

TEST(ComparisonCurves, ShowWhatIsHeldOutWhereAnythingIs) {
  ComparisonReport report = sample_comparison({row_of_curves("local"), row_of_curves("ps:async")});
  report.rows[1].evals[0][1].validation = ValidationFigures{.accuracy = 0.7, .loss = 0.9};
  const std::map<std::string, Chart> curves = curves_of(report);
  ASSERT_THAT(curves, SizeIs(5));
  const Chart& accuracy = curves.at("Accuracy on what is held out");
  ASSERT_THAT(accuracy.series, ElementsAre(Field(&ChartSeries::name, "ps:async")));
  EXPECT_EQ(accuracy.series[0].points[0].y, 0.7);
  EXPECT_EQ(curves.at("Loss on what is held out").series[0].points[0].y, 0.9);
}

TEST(ComparisonCurves, SayWhichRoundStandsForSeveral) {
  ComparisonReport report = sample_comparison({row_of_curves("local")});
  EXPECT_EQ(curves_of(report).at("Loss on the test set").note, "");
  report.rows[0].rounds.push_back(sample_round(120));
  report.rows[0].evals.push_back({});
  EXPECT_EQ(curves_of(report).at("Loss on the test set").note, "Each row's round of median speed.");
}

}  // namespace
}  // namespace syncopate::experiments
