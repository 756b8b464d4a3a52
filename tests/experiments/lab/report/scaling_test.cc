#include "experiments/lab/report/scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/lab/report/crossover.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// By logarithms.
auto Near(double value) { return testing::DoubleNear(value, 1e-12); }

using Values = std::vector<std::pair<std::string, std::string>>;

ComparedRow row(const std::string& mode, const Values& values, const std::vector<double>& speeds, int workers = 0) {
  ComparedRow row{.label = mode, .mode = mode, .values = values, .workers = workers};
  for (const auto& [name, value] : values) row.label += " " + name + "=" + value;
  for (const double speed : speeds) {
    RunReport report;
    report.samples_per_second = speed;
    row.rounds.emplace_back(report);
  }
  return row;
}

ComparedRow of_workers(const std::string& mode, int workers, const std::vector<double>& speeds) {
  return row(mode, {{"workers", std::to_string(workers)}}, speeds, workers);
}

std::vector<double> efficiencies(const ScalingCurve& curve) {
  std::vector<double> all;
  for (const ScalingPoint& point : curve.points) all.push_back(point.efficiency);
  return all;
}

TEST(Scaling, IsHeldAgainstOneWorkerThatSendsNothing) {
  const ComparisonReport report{.varied = {"workers"},
                                .rows = {of_workers("allreduce", 1, {100}), of_workers("allreduce", 4, {300}),
                                         of_workers("ps:sync", 1, {50}), of_workers("ps:sync", 4, {120})}};
  const std::vector<ScalingCurve> curves = scaling_of(report);
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_THAT(efficiencies(curves[0]), ElementsAre(Near(1), Near(0.75)));
  EXPECT_EQ(curves[1].measure, 0u);
  EXPECT_THAT(efficiencies(curves[1]), ElementsAre(Near(0.5), Near(0.3)));
}

TEST(Scaling, IsHeldAgainstItsFewestWorkersWhereNobodyRanAlone) {
  const ComparisonReport report{.varied = {"workers"},
                                .rows = {of_workers("ps:async", 8, {400}), of_workers("ps:async", 2, {160})}};
  const std::vector<ScalingCurve> curves = scaling_of(report);
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_EQ(curves[0].measure, 1u);
  EXPECT_THAT(efficiencies(curves[0]), ElementsAre(Near(1), Near(0.625)));
}

// One worker with another batch is another job.
TEST(Scaling, IsHeldAgainstAWorkerOfTheSameOtherValues) {
  const auto at = [](const std::string& mode, const std::string& workers, const std::string& batch, double speed) {
    return row(mode, {{"workers", workers}, {"batch-size", batch}}, {speed}, std::stoi(workers));
  };
  const ComparisonReport report{.varied = {"workers", "batch-size"},
                                .rows = {at("allreduce", "1", "32", 100), at("allreduce", "1", "64", 200),
                                         at("ps:sync", "1", "64", 100), at("ps:sync", "2", "64", 300)}};
  const std::vector<ScalingCurve> curves = scaling_of(report);
  ASSERT_EQ(curves.size(), 1u) << "allreduce has but one number of workers for each batch";
  EXPECT_EQ(curves[0].measure, 1u);
  EXPECT_THAT(efficiencies(curves[0]), ElementsAre(Near(0.5), Near(0.75)));
}

TEST(Scaling, HasAnIntervalWhereRoundsPairTheRows) {
  const ComparisonReport report{.varied = {"workers"},
                                .rows = {of_workers("allreduce", 1, {100, 110, 90, 105, 95}),
                                         of_workers("allreduce", 2, {190, 209, 171, 200, 181})}};
  const ScalingPoint two = scaling_of(report).at(0).points.at(1);
  ASSERT_TRUE(two.speedup.interval.has_value());
  EXPECT_LT(two.speedup.interval->low, 1.9);
  EXPECT_GT(two.speedup.interval->high, 1.9);
  EXPECT_LT(two.speedup.interval->high, 1.95);
}

TEST(Scaling, IsNoneWhereWorkersAreNotVaried) {
  EXPECT_THAT(scaling_of({.varied = {"batch-size"}, .rows = {row("allreduce", {{"batch-size", "32"}}, {1})}}),
              IsEmpty());
}

ComparisonReport two_modes(const std::vector<double>& allreduce, const std::vector<double>& servers) {
  ComparisonReport report{.varied = {"workers"}};
  for (std::size_t i = 0; i < allreduce.size(); ++i) {
    report.rows.push_back(of_workers("allreduce", 1 << i, {allreduce[i]}));
    report.rows.push_back(of_workers("ps:sync", 1 << i, {servers[i]}));
  }
  return report;
}

TEST(Crossovers, LieWhereTheRatioIsOne) {
  const std::vector<Crossover> found = crossovers_of(two_modes({200, 200, 200}, {100, 100, 400}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].below, "allreduce");
  EXPECT_EQ(found[0].above, "ps:sync");
  EXPECT_NEAR(found[0].at, std::sqrt(2.0 * 4.0), 1e-9) << "twice as fast and half as fast: halfway, by logarithms";
  EXPECT_EQ(found[0].between, (Interval{2, 4}));
  EXPECT_FALSE(found[0].is_judged);
}

TEST(Crossovers, AreSeveralWhereModesAreAheadInTurn) {
  EXPECT_EQ(crossovers_of(two_modes({2, 1, 2}, {1, 2, 1})).size(), 2u);
}

TEST(Crossovers, AreNoneAmongEqualOrOrderedModes) {
  EXPECT_THAT(crossovers_of(two_modes({100, 100, 100}, {99.9, 100.1, 99.9})), IsEmpty());
  EXPECT_THAT(crossovers_of(two_modes({100, 100, 100}, {99, 98, 50})), IsEmpty());
}

// What is hardly ahead is not ahead; the crossover lies between where each is.
TEST(Crossovers, PassOverValuesAtWhichNeitherIsAhead) {
  const std::vector<Crossover> found = crossovers_of(two_modes({200, 100, 100}, {100, 100.5, 200}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].between, (Interval{1, 4}));
  EXPECT_NEAR(found[0].at, 2, 0.02);
}

// Allreduce has no servers, and meets servers of any number.
TEST(Crossovers, AreOfEachCombinationOfTheOtherValues) {
  ComparisonReport report{.varied = {"workers", "servers"}};
  for (const int workers : {1, 2}) {
    const std::string count = std::to_string(workers);
    report.rows.push_back(row("allreduce", {{"workers", count}}, {10}, workers));
    for (const auto* servers : {"1", "2"}) {
      const bool is_behind = workers == 1 || servers[0] == '1';
      report.rows.push_back(
          row("ps:sync", {{"workers", count}, {"servers", servers}}, {is_behind ? 5.0 : 20.0}, workers));
    }
  }
  const std::vector<Crossover> found = crossovers_of(report);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].others, "servers=2");
}

// A round in which a mode is ahead by chance claims nothing.
TEST(Crossovers, NeedClaimsWhereRoundsJudge) {
  ComparisonReport report{.varied = {"workers"}};
  const std::vector<double> steady = {100, 100, 100, 100, 100};
  report.rows.push_back(of_workers("allreduce", 1, steady));
  report.rows.push_back(of_workers("ps:sync", 1, {90, 91, 89, 90, 90}));
  report.rows.push_back(of_workers("allreduce", 2, steady));
  report.rows.push_back(of_workers("ps:sync", 2, {150, 80, 130, 85, 120}));
  EXPECT_THAT(crossovers_of(report), IsEmpty());
  report.rows.push_back(of_workers("allreduce", 4, steady));
  report.rows.push_back(of_workers("ps:sync", 4, {150, 149, 151, 150, 152}));
  const std::vector<Crossover> found = crossovers_of(report);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].between, (Interval{1, 4}));
  EXPECT_TRUE(found[0].is_judged);
}

}  // namespace
}  // namespace syncopate::experiments
