#include "experiments/lab/report/comparison_reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "experiments/lab/report/comparison_files.h"
#include "tests/experiments/lab/report/sample_comparison.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// One with all that a page shows.
ComparisonReport whole_comparison() {
  ComparisonReport report =
      sample_comparison({sample_row("local", {1000, 1010}), sample_row("ps:sync", "1", {500, 505}),
                         sample_row("ps:sync", "4", {700, 710})});
  report.command = "./run_experiment study --vary=servers=1,4 \\\n    --modes=local,ps:sync";
  report.config_toml = "seed = 1\ncluster = \"real\"\n";
  report.started = "2026-03-01 12:00:00 UTC";
  report.version = "0.9 (abc)";
  report.machine.host = "here";
  report.machine.cores = 2;
  report.machine.sanitizers = "address";
  report.rate_rule = "per-sample";
  report.target = 0.95;
  report.prices = prediction::HostPrices{.worker = 3.5, .server = 0.5};
  report.varied = {"servers"};
  report.order = {{0, 2, 1}, {1, 0, 2}};
  report.trials = {{"local", 0.1, {0.5, std::numeric_limits<double>::quiet_NaN()}, {1.5, 2}}};
  report.left_out = {"ps:backup:4: left out: --consistency: <too many>"};
  report.notes = {std::string(400, 'n')};
  for (ComparedRow& row : report.rows) {
    row.workers = 2;
    row.servers = row.values.empty() ? 0 : 2;
    row.batch_size = 64;
    row.step = StepParts{.ideal_ms = 2,
                         .measured_ms = 6,
                         .parts = {{"thin link", 1}, {"incast", 3}},
                         .why = "because\nof it",
                         .samples_per_second = 480,
                         .predicted = 490.5};
    row.training = {{.seconds = 0.1, .steps = 10, .samples = 640, .loss = 1.0 / 3}};
    row.evals[0] = {{.epoch = 0.5,
                     .step = 10,
                     .samples_seen = 640,
                     .training_seconds = 0.1,
                     .accuracy = 0.5,
                     .loss = 0.7,
                     .figures = {.hit_rate = 0.25, .ndcg = 0.125},
                     .validation = ValidationFigures{.accuracy = 0.4, .loss = 0.9},
                     .train_loss = 0.3}};
  }
  report.rows[0].rounds[1]->seconds_to_target = 1.5;
  report.rows[0].rounds[1]->test_labels = 2000;
  report.rows[0].rounds[1]->machine = MachineLoad{.seconds = 10, .cores = 2, .workers = 1, .own = 0.5, .others = 0.3};
  report.rows[0].rounds[1]->servers[0] = {.pushes = 100, .bytes_in = 1 << 20, .bytes_out = 1 << 20};
  report.rows[2].rounds[0].reset();
  report.outcome = "ps:sync servers=4, round 1: lost worker 1";
  return report;
}

TEST(ReadComparison, ComesToTheVerySameFilesAgain) {
  for (const bool simulated : {false, true}) {
    ComparisonReport report = whole_comparison();
    report.simulated = simulated;
    const Result<ComparisonReport> read = read_comparison(comparison_json(report));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(comparison_html(*read), comparison_html(report));
    EXPECT_EQ(comparison_csv(*read), comparison_csv(report));
    EXPECT_EQ(comparison_json(*read), comparison_json(report));
  }
}

TEST(ReadComparison, TakesWhatEarlierVersionsWroteAsNotKnown) {
  auto json = nlohmann::ordered_json::parse(comparison_json(whole_comparison()));
  for (const char* name : {"simulated", "prices"}) json.erase(name);
  json["config"] = "cluster = \"simulated\"\n";
  for (auto& row : json["rows"]) {
    for (const char* name : {"training_curve", "batch_size"}) row.erase(name);
    row["step_parts"].erase("parts_in_order");
  }
  const Result<ComparisonReport> read = read_comparison(json.dump());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(read->simulated) << "as its settings say";
  EXPECT_FALSE(read->prices);
  EXPECT_TRUE(read->rows[1].training.empty());
  EXPECT_THAT(comparison_html(*read), HasSubstr("ps:sync servers=1"));
}

TEST(ReadComparison, SaysWhatIsWrong) {
  const auto refusal = [](const std::string& text) { return read_comparison(text).status().message(); };
  const std::string text = comparison_json(whole_comparison());
  EXPECT_EQ(refusal(text.substr(0, text.size() / 2)), "is not whole, or no JSON");
  EXPECT_EQ(refusal("[]"), "is no JSON object");
  EXPECT_EQ(refusal("{}"), "has no job");
  auto json = nlohmann::ordered_json::parse(text);
  json["rows"][1].erase("mode");
  EXPECT_EQ(refusal(json.dump()), "has no mode");
  json["rows"][1] = 7;
  EXPECT_EQ(refusal(json.dump()), "rows must be a list of objects");
  json["rows"] = nlohmann::ordered_json::array();
  EXPECT_EQ(refusal(json.dump()), "has no rows");
  json["in_rounds"] = "yes";
  EXPECT_EQ(refusal(json.dump()), "in_rounds must be true or false");
}

TEST(ReadComparison, BearsRowsThatDoNotFitEachOther) {
  auto json = nlohmann::ordered_json::parse(comparison_json(whole_comparison()));
  json["rows"][0]["rounds"].push_back(nullptr);
  json["order"].push_back({"nobody", 3, "local"});
  json["order"].push_back("no list");
  const Result<ComparisonReport> read = read_comparison(json.dump());
  ASSERT_TRUE(read.ok()) << read.status().message();
  for (const ComparedRow& row : read->rows) {
    EXPECT_EQ(row.rounds.size(), 3u);
    EXPECT_EQ(row.evals.size(), 3u);
    EXPECT_EQ(row.folders.size(), 3u);
  }
  EXPECT_THAT(read->order[2], ElementsAre(0));
  EXPECT_THAT(comparison_html(*read), Not(HasSubstr("nobody")));
}

}  // namespace
}  // namespace syncopate::experiments
