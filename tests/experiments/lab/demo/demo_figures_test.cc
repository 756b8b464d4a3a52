#include "experiments/lab/demo/demo_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/lab/report/comparison_files.h"
#include "tests/experiments/lab/report/sample_comparison.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using Document = DemoFigures::Document;

DemoFigures sample_figures() {
  ComparisonReport report =
      sample_comparison({sample_row("allreduce", {1000, 2000}), sample_row("ps:sync", "1", {500, 700}),
                         sample_row("ps:sync", "2", {900})});
  report.varied = {"servers"};
  return {{{"speed", Document::parse(comparison_json(report))},
           {"death",
            Document::parse(R"({"outcome": "completed", "faults": [{"fault": "kill", "seconds_to_first_step": 0.5}],
                                         "servers": [{"server": 3, "bytes_in": 7}, {"server": 5, "bytes_in": 9}]})")}},
          {{"twice", "2 * one"}, {"one", "[speed/ps:sync servers=1/samples_per_second]"}, {"round", "round + 1"}}};
}

std::optional<double> number_at(const std::string& path) {
  return evaluate("[" + path + "]", sample_figures())->number;
}

TEST(DemoFigures, AreFoundInTheRowsOfAComparison) {
  EXPECT_EQ(number_at("speed/allreduce/samples_per_second"), 1500) << "the mean over rounds";
  EXPECT_EQ(number_at("speed/allreduce/samples_per_second/most"), 2000);
  EXPECT_EQ(number_at("speed/ps:sync servers=2/step_split_ms/exposed_wait"), 0.5) << "a figure of its rounds";
  EXPECT_EQ(number_at("speed/allreduce/staleness_mean"), 2.5);
  EXPECT_EQ(number_at("speed/allreduce/cost"), std::nullopt) << "not measured";
  EXPECT_EQ(number_at("speed/ps:async/samples_per_second"), std::nullopt) << "no such row";
  EXPECT_EQ(number_at("speed/rounds_asked"), 2) << "of the comparison";
}

TEST(DemoFigures, AreFoundInTheSummaryOfARun) {
  EXPECT_EQ(number_at("death/faults/0/seconds_to_first_step"), 0.5);
  EXPECT_EQ(number_at("death/servers/5/bytes_in"), 9) << "by the first member of an element";
  EXPECT_EQ(number_at("death/servers/1/bytes_in"), 9) << "by number";
  EXPECT_EQ(number_at("death/servers/9/bytes_in"), std::nullopt);
  EXPECT_EQ(*evaluate("[death/outcome]", sample_figures())->text, "completed");
}

TEST(DemoFigures, AreSeveralWhereNamesBeginAlike) {
  EXPECT_THAT(
      *sample_figures().at({"speed", "ps:sync*", "samples_per_second"}),
      ElementsAre(Field(&NamedFigure::name, "ps:sync servers=1"), Field(&NamedFigure::name, "ps:sync servers=2")));
  EXPECT_EQ(*evaluate("name_of_most([speed/*/samples_per_second])", sample_figures())->text, "allreduce");
}

TEST(DemoFigures, AreDefinedByOthers) {
  EXPECT_EQ(*evaluate("twice", sample_figures())->number, 1200);
  EXPECT_THAT(evaluate("round", sample_figures()).status().message(), HasSubstr("is defined by itself"));
  EXPECT_THAT(evaluate("[speeed/x]", sample_figures()).status().message(), HasSubstr("speeed: no such run"));
}

}  // namespace
}  // namespace syncopate::experiments
