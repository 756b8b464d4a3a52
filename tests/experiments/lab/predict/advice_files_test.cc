#include "experiments/lab/predict/advice_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/os/regular_file.h"
#include "common/text/format.h"
#include "common/text/number.h"
#include "experiments/lab/predict/advice_charts.h"
#include "experiments/lab/predict/prediction_line.h"
#include "experiments/lab/report/chart_json.h"
#include "prediction/published_table.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const std::vector<std::string> kJob = {"--model=resnet18", "--batch-size=32", "--compute=20ms", "--shape=10gbit"};

class FilesOfAPrediction : public testing::Test {
 protected:
  // Returns what `command` prints with these options and --output.
  std::string printed(const std::string& command, const std::vector<std::string>& more) {
    using testing_support::operator+;
    const JobRunner run = [&](const ResolvedRun& config) {
      Interrupts interrupts;
      SoloTimes solo;
      Console quiet(true);
      return run_job(config, Survey(), solo, interrupts, quiet);
    };
    const std::vector<std::string> words = std::vector<std::string>{command, "--output=" + output_} + kJob + more;
    const Result<std::string> text = prediction_text(words, run);
    EXPECT_TRUE(text.ok()) << text.status().message();
    return text.ok() ? *text : "";
  }

  std::string file(const std::string& name) { return *read_regular_file(output_ + "/" + name, 1 << 24); }

  // Holds each cell of a CSV against the same row of the JSON.
  void expect_alike(const std::string& csv, const json& rows) {
    const auto table = prediction::read_table(file(csv));
    ASSERT_TRUE(table.ok()) << table.status().message();
    ASSERT_THAT(*table, SizeIs(rows.size()));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (const auto& [name, value] : rows[i].items()) {
        const std::string& cell = (*table)[i].text(name);
        if (value.is_number()) {
          EXPECT_EQ(*parse_number<double>(cell), value.get<double>()) << name;
        } else {
          EXPECT_EQ(cell, value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump()) << name;
        }
      }
    }
  }

  const testing_support::TemporaryFolder folder_;
  const std::string output_ = folder_.path() / "results";
};

TEST_F(FilesOfAPrediction, HaveTheFiguresThatAdvicePrints) {
  const std::string text = printed("advise", {"--workers=2,8", "--price-worker=3", "--price-server=1"});
  EXPECT_THAT(text, HasSubstr("results in " + output_ + ": report.html, advice.csv, advice.json\n"));
  const json advice = json::parse(file("advice.json"));
  EXPECT_EQ(advice["job"]["step_ms"], 20);
  EXPECT_THAT(advice["command"], HasSubstr("advise --output="));
  json all = json::array();
  for (const json& size : advice["sizes"]) {
    ASSERT_FALSE(size["ways"].empty());
    for (const json& way : size["ways"]) {
      all.push_back(way);
      if (!way["best_of_its_kind"]) continue;
      EXPECT_THAT(text, HasSubstr(way["command"].get<std::string>()));
      EXPECT_THAT(text,
                  AllOf(HasSubstr(format_ms(way["step_ms"])), HasSubstr(format_count(way["samples_per_second"]))));
      EXPECT_NEAR(way["efficiency"].get<double>() * way["step_ms"].get<double>(), 20, 1e-9);
      EXPECT_GT(way["cost_per_million_samples"], 0);
    }
    for (const json& sentence : size["sentences"]) EXPECT_THAT(text, HasSubstr("- " + sentence.get<std::string>()));
    EXPECT_THAT(file("report.html"), HasSubstr(std::to_string(size["workers"].get<int>()) + " workers</h2>"));
  }
  expect_alike("advice.csv", all);
  EXPECT_THAT(file("report.html"), AllOf(HasSubstr("<p>Not searched: "), HasSubstr("are from real ones.</p>")));
  EXPECT_THAT(file("report.html"), AllOf(HasSubstr("The best of each mode, by workers"),
                                         HasSubstr("Where the faster mode changes"), HasSubstr("How sure: ")));
}

TEST_F(FilesOfAPrediction, HaveTheFiguresThatPredictPrints) {
  const std::string text = printed("predict", {"--workers=2,4", "--simulate=fifo"});
  const json prediction = json::parse(file("prediction.json"));
  ASSERT_THAT(prediction["rows"], SizeIs(12));
  for (const json& row : prediction["rows"]) {
    EXPECT_THAT(text, AllOf(HasSubstr(row["exchange"].get<std::string>()), HasSubstr(format_ms(row["step_ms"]))));
    if (!row["simulated_step_ms"].is_null()) EXPECT_THAT(text, HasSubstr(format_ms(row["simulated_step_ms"])));
  }
  EXPECT_GT(prediction["rows"][0]["simulated_step_ms"], 20);
  expect_alike("prediction.csv", prediction["rows"]);
  EXPECT_THAT(file("report.html"), AllOf(HasSubstr("Each exchange, by workers"), HasSubstr("ring allreduce")));
}

TEST_F(FilesOfAPrediction, TakeNoFolderThatHoldsOthers) {
  using testing_support::operator+;
  std::filesystem::create_directory(output_);
  std::ofstream(output_ + "/thesis.tex") << "mine";
  const JobRunner never = [](const ResolvedRun&) -> JobResult {
    ADD_FAILURE() << "simulates before it looks";
    return {};
  };
  const Result<std::string> text =
      prediction_text(std::vector<std::string>{"advise", "--workers=4", "--output=" + output_} + kJob, never);
  EXPECT_EQ(text.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(text.status().message(), HasSubstr(output_));
}

AdvisedSize size_of(int workers, double allreduce, double servers) {
  AdvisedSize size{.workers = workers};
  const auto way = [](prediction::Exchange exchange, double step) {
    return SimulatedWay{.way = {.plan = {.exchange = exchange}}, .step = step, .samples_per_second = 1, .score = step};
  };
  size.simulated.ways = {way(prediction::Exchange::kRing, allreduce), way(prediction::Exchange::kServers, servers)};
  return size;
}

TEST(CrossoversOfAdvice, LieBetweenSizesAtWhichEachModeIsAhead) {
  // 2 at 4 workers, half at 64: 1 in the middle of the logarithms, whatever is alike between them.
  const std::vector<AdvisedSize> sizes = {size_of(64, 1, 2), size_of(4, 2, 1), size_of(16, 1, 1)};
  const std::vector<Crossover> crossovers = crossovers_of(sizes);
  ASSERT_THAT(crossovers, SizeIs(1));
  EXPECT_NEAR(crossovers[0].at, 16, 1e-9);
  EXPECT_EQ(crossovers[0].below, "servers");
  EXPECT_EQ(crossovers[0].above, "allreduce");
  EXPECT_EQ(crossovers[0].between.low, 4);
  EXPECT_EQ(crossovers[0].between.high, 64);
  EXPECT_THAT(crossovers_of({size_of(4, 1, 1.001), size_of(16, 1.001, 1)}), SizeIs(0)) << "below what is claimed";
}

TEST(ChartsOfAdvice, DrawTheCrossover) {
  AdviseRequest request;
  request.job.batch_size = 32;
  request.job.step_seconds = 0.5;
  const std::vector<AnyChart> charts = advice_charts(request, {size_of(4, 2, 1), size_of(16, 1, 2)});
  ASSERT_THAT(charts, SizeIs(3));
  EXPECT_THAT(chart_json(charts[1]), AllOf(HasSubstr("\"crossover\""), HasSubstr("about 8 workers")));
  EXPECT_THAT(advice_charts(request, {size_of(4, 2, 1)}), SizeIs(1)) << "one size has bars alone";
}

}  // namespace
}  // namespace syncopate::experiments
