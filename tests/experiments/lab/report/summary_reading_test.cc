#include "experiments/lab/report/summary_reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/lab/report/evals_csv.h"
#include "experiments/lab/report/summary_json.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

TEST(SummaryReading, TakesWhatIsNotThereAsNotSaid) {
  const auto summary = read_summary(R"({"each_repeat": [], "outcome": "interrupted"})");
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->outcome, "interrupted");
  EXPECT_EQ(summary->steps_per_epoch, 0);
  EXPECT_THAT(summary->seeds, SizeIs(0));
}

TEST(SummaryReading, SaysWhatIsNotAsItShouldBe) {
  const auto refusal = [](std::string_view json) { return read_summary(json).status().message(); };
  EXPECT_EQ(refusal("{\"each_repeat\": ["), "is not whole, or no JSON");
  EXPECT_EQ(refusal("[]"), "is no JSON object");
  EXPECT_EQ(refusal("{}"), "has no each_repeat");
  EXPECT_EQ(refusal(R"({"each_repeat": {}})"), "each_repeat must be a list");
  EXPECT_EQ(refusal(R"({"each_repeat": [1]})"), "each_repeat must be a list of objects");
  EXPECT_EQ(refusal(R"({"each_repeat": [{}]})"), "has no samples_per_second");
  EXPECT_EQ(refusal(R"({"each_repeat": [], "seeds": [-1]})"), "seeds must be a list of whole numbers");
}

TEST(SummaryReading, ReadsWhatServersAndCoresDidAsItWasWritten) {
  RunReport report;
  report.servers[2] = {.pushes = 7,
                       .busy = std::chrono::milliseconds(1500),
                       .serving = std::chrono::milliseconds(2500),
                       .bytes_in = 100,
                       .bytes_out = 200,
                       .core_wait = std::chrono::milliseconds(250)};
  report.machine = MachineLoad{.seconds = 3, .cores = 2, .workers = 4, .own = 0.5, .waiting = 0.25};
  const auto summary = read_summary(summary_json(std::span(&report, 1), {}));
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_EQ(summary->reports[0].servers, report.servers);
  ASSERT_TRUE(summary->reports[0].machine.has_value());
  EXPECT_EQ(summary->reports[0].machine->cores, 2);
  EXPECT_EQ(summary->reports[0].machine->own, 0.5);
  EXPECT_FALSE(summary->reports[0].machine->others.has_value());
}

TEST(SummaryReading, ReadsStalenessAndHowTheRunWasSimulatedAsTheyWereWritten) {
  RunReport report;
  report.staleness_bins = {{.staleness = 3, .steps = 7, .loss = 0.5, .excess_loss = -0.25}};
  RunFacts facts;
  facts.simulation = SimulationFacts{.compute = "5 ms", .network = "frames"};
  const auto summary = read_summary(summary_json(std::span(&report, 1), facts));
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  ASSERT_THAT(summary->reports[0].staleness_bins, SizeIs(1));
  const StalenessBin& bin = summary->reports[0].staleness_bins[0];
  EXPECT_EQ(bin.staleness, 3);
  EXPECT_EQ(bin.steps, 7);
  EXPECT_EQ(bin.loss, 0.5);
  EXPECT_EQ(bin.excess_loss, -0.25);
  EXPECT_EQ(summary->simulated_network, "frames");
  EXPECT_EQ(summary->simulated_compute, "5 ms");
}

// Whoever has made it must not end the program by what it nests.
TEST(SummaryReading, OutlastsWhatIsNestedDeeply) {
  const std::string deep = std::string(300000, '[') + std::string(300000, ']');
  EXPECT_EQ(read_summary("{\"each_repeat\": [" + deep + "]}").status().message(),
            "each_repeat must be a list of objects");
}

TEST(SummaryReading, ReadsEvaluationsByTheNamesOfTheirColumns) {
  const auto evals = read_evals(
      "repeat,more,epoch,step,samples_seen,training_s,accuracy,loss,hr10\n"
      "0,x,1,10,640,0.5,0.8,0.25,\n1,x,2,20,1280,1.5,0.9,0.125,0.75\n",
      1);
  ASSERT_TRUE(evals.ok()) << evals.status().message();
  ASSERT_THAT(*evals, ElementsAre(SizeIs(1), SizeIs(1)));
  EXPECT_EQ(evals->at(0)[0].accuracy, 0.8);
  EXPECT_FALSE(evals->at(0)[0].figures.hit_rate.has_value());
  EXPECT_EQ(evals->at(1)[0].training_seconds, 1.5);
  EXPECT_EQ(evals->at(1)[0].figures.hit_rate, 0.75);
  EXPECT_EQ(read_evals("repeat,epoch\n", 1).status().message(), "has no column step");
  EXPECT_THAT(read_evals("repeat,epoch,step,samples_seen,training_s,accuracy,loss\n0,1,2\n", 1).status().message(),
              HasSubstr("line 2 is no evaluation"));
}

}  // namespace
}  // namespace syncopate::experiments
