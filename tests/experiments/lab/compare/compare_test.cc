#include "experiments/lab/compare/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "experiments/lab/compare/equality.h"
#include "experiments/lab/report/paired_comparison.h"
#include "experiments/lab/run/initial_weights.h"
#include "tests/support/resolved.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

RunReport report_of(double samples_per_second) {
  RunReport report;
  report.samples_per_second = samples_per_second;
  return report;
}

std::vector<PlannedRun> planned_runs(const std::vector<ComparedRun>& rows) {
  std::vector<PlannedRun> runs;
  for (const ComparedRun& row : rows) runs.push_back(planned(row, resolved(row.config)));
  return runs;
}

// compare, with jobs that end as a test says instead of running.
class CompareTest : public testing::Test {
 protected:
  CompareTest() {
    base_.mode = Mode::kAllreduce;
    base_.model = "softmax";
    base_.workers = 2;
    base_.repeat = 2;
    base_.output = "out";
    std::filesystem::current_path(folder_.path());
  }
  ~CompareTest() override { std::filesystem::current_path(before_); }

  ExitCode compare_modes(const std::string& modes) {
    Result<std::vector<ComparedRun>> runs = comparison_runs(base_, modes);
    EXPECT_TRUE(runs.ok()) << runs.status().message();
    std::filesystem::create_directory("out");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    apply_rate_rule(*runs, RateRule::kPerSample, reference_samples(base_));
    ComparisonJob job{.base = base_, .runs = planned_runs(*runs), .tune_rate = tune_rate_};
    job.auto_rounds = auto_rounds_;
    job.reference_samples = reference_samples(base_);
    const Resolver resolver = [](const RunRequest& request) { return resolve(request, {}, ""); };
    const ExitCode exit = compare(
        job, resolver, [this](const ResolvedRun& config) { return run(config); }, clock_);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return exit;
  }
  // The folders of the jobs that were run, in order.
  std::vector<std::string> outputs() const {
    std::vector<std::string> outputs;
    for (const ResolvedRun& config : ran_) outputs.push_back(config.output);
    return outputs;
  }

  // The folders of the rounds that were run, in order, without their number.
  std::vector<std::vector<std::string>> rounds() const {
    std::vector<std::vector<std::string>> rounds;
    for (const ResolvedRun& config : ran_) {
      if (config.output.find("/equality/") != std::string::npos) continue;
      const auto number = static_cast<std::size_t>(config.output.back() - '0');
      if (rounds.size() < number) rounds.resize(number);
      rounds[number - 1].push_back(config.output.substr(4, config.output.size() - 6));
    }
    return rounds;
  }

  RunRequest base_;
  std::optional<RateGrid> tune_rate_;
  std::optional<AutoRounds> auto_rounds_;
  ManualClock clock_;
  // What a job comes to, by its config; null: what the maps below say.
  std::function<std::optional<JobResult>(const ResolvedRun&)> outcome_;
  std::map<std::string, double> gaps_;    // how far off a job ends, of the way it goes, by its folder; 0 unless given
  std::map<std::string, double> speeds_;  // samples a second; 1 unless given
  std::map<Mode, std::map<std::string, std::string>> told_;  // facts of a row's workers
  std::map<std::string, JobResult> failures_;
  std::vector<ResolvedRun> ran_;
  std::string out_, err_;

 private:
  const std::filesystem::path before_ = std::filesystem::current_path();
  const testing_support::TemporaryFolder folder_;

  JobResult run(const ResolvedRun& config) {
    ran_.push_back(config);
    clock_.advance(std::chrono::seconds(10));
    if (failures_.contains(config.output)) return failures_[config.output];
    if (const auto result = outcome_ ? outcome_(config) : std::nullopt) return *result;
    JobResult result;
    if (config.output.find("/equality/") != std::string::npos) {
      result.weights = initial_weights(config, {})->values;
      for (float& weight : result.weights) weight += static_cast<float>(1 + gaps_[config.output]);
    }
    result.evals.resize(1);
    result.reports = {report_of(speeds_.contains(config.output) ? speeds_[config.output] : 1)};
    result.facts.of_workers = told_[config.mode];
    return result;
  }
};

TEST_F(CompareTest, SaysOfAScriptOnceWhatIsDoneToItAndWhatItReads) {
  told_[Mode::kAllreduce] = {{"batches", "each worker reads all data"}, {"taken over", "by torch's own update"}};
  told_[Mode::kPs] = {{"batches", "each worker reads all data"}, {"taken over", "by Syncopate's own update"}};
  EXPECT_EQ(compare_modes("allreduce,ps:async"), ExitCode::kSuccess);
  EXPECT_THAT(out_, AnyOf(HasSubstr("\nallreduce, ps:async: batches: each worker reads all data\n"),
                          HasSubstr("\nps:async, allreduce: batches: each worker reads all data\n")));
  EXPECT_THAT(out_, AllOf(HasSubstr("\nallreduce: taken over: by torch's own update\n"),
                          HasSubstr("\nps:async: taken over: by Syncopate's own update\n")));
}

TEST_F(CompareTest, ProvesEqualityThenRunsEveryRowOnceInEveryRound) {
  base_.repeat = 6;
  EXPECT_EQ(compare_modes("local,allreduce,ps:async"), ExitCode::kSuccess);
  EXPECT_THAT(std::vector(ran_.begin(), ran_.begin() + 3),
              ElementsAre(Field(&ResolvedRun::output, "out/equality/local"),
                          Field(&ResolvedRun::output, "out/equality/allreduce"),
                          Field(&ResolvedRun::output, "out/equality/ps-sync")));
  const auto all = rounds();
  ASSERT_EQ(all.size(), 6u);
  for (const auto& round : all) EXPECT_THAT(round, UnorderedElementsAre("local", "allreduce", "ps-async"));
  EXPECT_GT(std::set(all.begin(), all.end()).size(), 1u) << "in another order";
  EXPECT_THAT(err_, IsEmpty());
}

// A row's speed, by its round: a pattern that no trend explains.
double uneven(const ResolvedRun& config) {
  constexpr double kUneven[] = {1, 1.02, 0.99, 1.01, 0.98, 1.02, 1, 0.99, 1.01, 0.97};
  return 1000 * kUneven[static_cast<std::size_t>(config.seed * 7 + config.output.size()) % std::size(kUneven)];
}

TEST_F(CompareTest, EndsAtTheFirstLookThatShowsAClearDifference) {
  base_.repeat = 30;
  auto_rounds_ = AutoRounds{};
  outcome_ = [](const ResolvedRun& config) {
    JobResult result;
    result.evals.resize(1);
    result.reports = {report_of(uneven(config) * (config.mode == Mode::kPs ? 0.5 : 1))};
    return config.output.find("/equality/") == std::string::npos ? std::optional(result) : std::nullopt;
  };
  EXPECT_EQ(compare_modes("allreduce,ps:async"), ExitCode::kSuccess);
  EXPECT_EQ(rounds().size(), kFewestRounds);
  EXPECT_THAT(out_, AllOf(HasSubstr("rounds until the verdict is clear\n"), HasSubstr("--repeat=auto: 5 rounds: each"),
                          HasSubstr("Answer: allreduce is the fastest")));
}

TEST_F(CompareTest, KeepsTheTimeThatItHasSaidAndSaysWhatVerdictsTake) {
  base_.repeat = 30;
  auto_rounds_ = AutoRounds{.seconds = 80};  // a run takes 10: three of the proof, and then two a round
  EXPECT_EQ(compare_modes("allreduce,ps:async"), ExitCode::kSuccess);
  EXPECT_EQ(rounds().size(), 2u);
  EXPECT_THAT(out_, AllOf(HasSubstr("rounds until the verdict is clear, 80 s in all at most (--repeat-limit)\n"),
                          HasSubstr("verdicts begin at 5, for which --repeat-limit=160s has time"),
                          HasSubstr("in 2 rounds, too few to say that it is the fastest.")));
  ran_.clear();
  auto_rounds_->seconds = 160;
  base_.output = "again";
  std::filesystem::create_directory("again");
  EXPECT_EQ(compare_modes("allreduce,ps:async"), ExitCode::kSuccess);
  EXPECT_THAT(out_, HasSubstr("--repeat=auto: 5 rounds: "));
}

TEST_F(CompareTest, DrawsTheOrderFromTheSeed) {
  base_.repeat = 6;
  compare_modes("local,allreduce,ps:async");
  const auto first = rounds();
  ran_.clear();
  compare_modes("local,allreduce,ps:async");
  EXPECT_EQ(rounds(), first);
  ran_.clear();
  base_.seed = 2;
  compare_modes("local,allreduce,ps:async");
  EXPECT_NE(rounds(), first);
}

TEST_F(CompareTest, GivesEveryRoundASeedOfItsOwnAndTheSameData) {
  base_.repeat = 3;
  base_.seed = 40;
  compare_modes("allreduce,ps:async");
  for (const ResolvedRun& config : ran_) {
    EXPECT_EQ(config.data_seed, 1u);
    if (config.output.find("/equality/") != std::string::npos) continue;
    EXPECT_EQ(config.seed, 40u + static_cast<std::uint64_t>(config.output.back() - '1')) << config.output;
  }
}

TEST_F(CompareTest, TrainsEachRowAtItsOwnRate) {
  base_.workers = 4;
  base_.learning_rate = 0.1;
  compare_modes("allreduce,ps:async");
  for (const ResolvedRun& config : ran_) {
    if (config.output.find("/equality/") != std::string::npos) continue;
    EXPECT_EQ(config.learning_rate, config.mode == Mode::kPs ? 0.025 : 0.1);
  }
}

TEST_F(CompareTest, SaysWhichRunItIsAtAndHowLongTheRestTakes) {
  compare_modes("allreduce,ps:async");
  EXPECT_THAT(out_, ContainsRegex("\nround 1/2, run 1/2: [a-z:]+ +ETA unknown +\\.\\.\\. "));
  EXPECT_THAT(out_, ContainsRegex("\nround 1/2, run 2/2: [a-z:]+ +ETA 30 s +\\.\\.\\. "));
  EXPECT_THAT(out_, ContainsRegex("\nround 2/2, run 2/2: [a-z:]+ +ETA 10 s +\\.\\.\\. "));
}

TEST_F(CompareTest, KeepsWhatWasFinishedWhenItIsInterrupted) {
  base_.repeat = 3;
  outcome_ = [](const ResolvedRun& config) -> std::optional<JobResult> {
    if (!config.output.ends_with("-2")) return std::nullopt;
    JobResult interrupted;
    interrupted.exit = ExitCode::kInterrupted;
    interrupted.verdict = "interrupted";
    return interrupted;
  };
  EXPECT_EQ(compare_modes("allreduce,ps:async"), ExitCode::kInterrupted);
  EXPECT_EQ(ran_.size(), 3u + 2u + 1u) << "nothing runs after it";
  EXPECT_THAT(err_, HasSubstr("round 2: interrupted"));
  EXPECT_THAT(out_, AllOf(HasSubstr("\nallreduce "), HasSubstr("results in out")));
  EXPECT_TRUE(std::filesystem::exists("out/comparison.csv"));
  EXPECT_TRUE(std::filesystem::exists("out/comparison.html"));
}

TEST_F(CompareTest, ShowsNoTableWhereNothingWasFinished) {
  failures_["out/allreduce-1"].exit = failures_["out/ps-async-1"].exit = ExitCode::kInterrupted;
  EXPECT_EQ(compare_modes("allreduce,ps:async"), ExitCode::kInterrupted);
  EXPECT_FALSE(std::filesystem::exists("out/comparison.csv"));
}

// It is of the row that others survive, and what --fault asked for is measured like anything else.
TEST_F(CompareTest, LeavesOutARowThatAFaultHasEndedAndGoesOnWithTheOthers) {
  base_.faults = *FaultSchedule::parse("kill:worker1@step20");
  failures_["out/allreduce-1"].exit = ExitCode::kProcessLost;
  failures_["out/allreduce-1"].verdict = "worker 1 is gone";
  EXPECT_EQ(compare_modes("allreduce,ps:async"), ExitCode::kProcessLost);
  EXPECT_THAT(rounds()[1], ElementsAre("ps-async"));
  EXPECT_THAT(err_, HasSubstr("allreduce, round 1: worker 1 is gone; it is left out from then on"));
  EXPECT_TRUE(std::filesystem::exists("out/comparison.csv"));
}

TEST_F(CompareTest, NamesEveryRowThatDiverged) {
  outcome_ = [](const ResolvedRun& config) -> std::optional<JobResult> {
    if (config.output.find("/equality/") != std::string::npos) return std::nullopt;
    JobResult result;
    result.exit = ExitCode::kNotFinite;
    result.verdict = "the loss is NaN";
    return result;
  };
  EXPECT_EQ(compare_modes("allreduce,ps:async"), ExitCode::kNotFinite);
  const std::string last = err_.substr(err_.rfind("\n", err_.size() - 2) + 1);
  EXPECT_THAT(last, AllOf(HasSubstr("allreduce, round 1: the loss is NaN"), HasSubstr("; "),
                          HasSubstr("ps:async, round 1: the loss is NaN")));
}

TEST_F(CompareTest, TriesRatesWithOtherSeedsAndMeasuresWithTheBest) {
  base_.workers = 4;
  base_.epochs = 5;
  tune_rate_ = *parse_rate_grid("0.05,0.1,0.2");
  // allreduce is best at 0.1, ps:async at 0.05 of its own: the highest that is tried.
  outcome_ = [](const ResolvedRun& config) -> std::optional<JobResult> {
    if (config.output.find("/tuning/") == std::string::npos) return std::nullopt;
    const double best = config.mode == Mode::kPs ? 0.05 : 0.1;
    JobResult result;
    result.evals.resize(1);
    result.reports = {report_of(1)};
    result.reports.front().final_test_accuracy = 1 - std::abs(config.learning_rate - best);
    result.reports.front().final_test_loss = 0.1;
    return result;
  };
  EXPECT_EQ(compare_modes("allreduce,ps:async"), ExitCode::kSuccess);
  for (const ResolvedRun& config : ran_) {
    const bool is_trial = config.output.find("/tuning/") != std::string::npos;
    if (is_trial) {
      EXPECT_THAT(config.seed, AnyOf(3u, 4u)) << "rounds have 1 and 2";
      EXPECT_EQ(config.epochs, 5);
    }
    if (is_trial || config.output.find("/equality/") != std::string::npos) continue;
    EXPECT_EQ(config.learning_rate, config.mode == Mode::kPs ? 0.05 : 0.1);
  }
  EXPECT_EQ(ran_.size(), 3u + 2u * 3u * 2u + 2u * 2u);
  EXPECT_THAT(out_, HasSubstr("allreduce: learning rate 0.1 was best of 0.05 to 0.2\n"));
  EXPECT_THAT(out_, HasSubstr("ps:async: learning rate 0.05 was best of 0.0125 to 0.05, the highest of those tried"));
}

TEST_F(CompareTest, MeasuresNoRowThatDivergesAtAllRates) {
  tune_rate_ = *parse_rate_grid("0.05,0.1");
  outcome_ = [](const ResolvedRun& config) -> std::optional<JobResult> {
    if (config.output.find("/tuning/") == std::string::npos) return std::nullopt;
    JobResult result;
    result.evals.resize(1);
    result.reports = {report_of(1)};
    result.reports.front().final_test_accuracy = 0.1;
    result.reports.front().final_test_loss = config.mode == Mode::kPs ? std::nan("") : 2.3;
    return result;
  };
  EXPECT_EQ(compare_modes("allreduce,ps:async"), ExitCode::kSuccess);
  EXPECT_THAT(out_,
              ContainsRegex("trial 3/8: ps:async at 0\\.025 +ETA [^\n]*(\n    )?[^\n]* accuracy 0\\.1000, diverged\n"));
  EXPECT_THAT(out_, HasSubstr("ps:async: diverged at all rates of --tune-rate, and is not measured"));
  EXPECT_EQ(ran_.back().mode, Mode::kAllreduce);
}

TEST_F(CompareTest, PlansWithoutRunning) {
  base_.workers = 4;
  base_.learning_rate = 0.1;
  std::vector<ComparedRun> runs = *comparison_runs(base_, "allreduce,ps:async");
  apply_rate_rule(runs, RateRule::kPerSample, reference_samples(base_));
  const std::string plan = comparison_plan({.base = base_,
                                            .runs = planned_runs(runs),
                                            .left_out = {"ps:sync: left out: a reason"},
                                            .reference_samples = reference_samples(base_)});
  EXPECT_THAT(plan, ContainsRegex("\nps:async +0\\.025 +64 +0\\.390625\n"));
  EXPECT_THAT(plan, HasSubstr("ps:sync: left out: a reason\n"));
  EXPECT_THAT(plan, HasSubstr("2 rounds of 2 runs each, 4 in all\n  round 1, seed 1: "));
  EXPECT_THAT(ran_, IsEmpty());
}

TEST_F(CompareTest, ProvesEqualityOnAFewStepsAtARateOfItsOwnAndMeasuresTheJobItself) {
  base_.learning_rate = 0.5;
  base_.epochs = 7;
  base_.target_accuracy = 0.9;
  EXPECT_EQ(compare_modes("ps:async"), ExitCode::kSuccess);
  EXPECT_EQ(ran_.front().learning_rate, equality_job(base_).learning_rate);
  EXPECT_EQ(ran_.front().steps, equality_job(base_).steps);
  EXPECT_EQ(ran_.front().target_accuracy, 0);
  EXPECT_EQ(ran_.back().learning_rate, 0.25) << "of an update of one worker's batch";
  EXPECT_EQ(ran_.back().epochs, 7);
  EXPECT_EQ(ran_.back().target_accuracy, 0.9);
  EXPECT_EQ(ran_.back().repeat, 1);
}

// Its norms see one worker's batch, and local's all of them.
TEST_F(CompareTest, LeavesLocalOutOfTheProofForAModelWithBatchNormAndSaysSo) {
  base_.model = "resnet20";
  EXPECT_EQ(compare_modes("local,ps:async"), ExitCode::kSuccess);
  EXPECT_THAT(outputs(), Contains("out/equality/allreduce"));
  EXPECT_THAT(outputs(), Contains("out/equality/ps-sync"));
  EXPECT_THAT(outputs(), Not(Contains("out/equality/local")));
  EXPECT_THAT(out_, HasSubstr("equality: allreduce and ps:sync follow the same curve"));
  EXPECT_THAT(out_, HasSubstr("local is left out, whose batch norms see all workers' batches as one"));
}

// It has one worker, and so trains batches of all labels.
TEST_F(CompareTest, LeavesLocalOutOfTheProofWhereWorkersHaveTheirOwnLabelsAndSaysSo) {
  base_.shard = DataShard::kLabels;
  EXPECT_EQ(compare_modes("local,ps:async"), ExitCode::kSuccess);
  EXPECT_THAT(outputs(), Contains("out/equality/ps-sync"));
  EXPECT_THAT(outputs(), Not(Contains("out/equality/local")));
  EXPECT_THAT(out_, HasSubstr("local is left out, which has no workers to divide the samples among"));
}

TEST_F(CompareTest, ProvesEqualityWithoutCompressionAndMeasuresWithIt) {
  base_.compress = *parse_codec("int8");
  EXPECT_EQ(compare_modes("allreduce"), ExitCode::kSuccess);
  EXPECT_EQ(ran_.front().compress, CodecConfig());
  EXPECT_EQ(ran_.back().compress, base_.compress);
  EXPECT_THAT(out_, HasSubstr("follow the same curve without --compress: after "));
  EXPECT_THAT(out_, HasSubstr("\n--compress=int8, in all modes that have it\n"));
}

TEST_F(CompareTest, NamesModesThatLieTooFarApartAndMeasuresNothing) {
  for (const std::string seed : {"", "-seed-2", "-seed-3"}) gaps_["out/equality/ps-sync" + seed] = 0.02;
  EXPECT_EQ(compare_modes("local,ps:async"), ExitCode::kUnequal);
  EXPECT_THAT(outputs(), testing::Each(testing::StartsWith("out/equality/")));
  EXPECT_THAT(err_, HasSubstr("ps:sync does not follow the curve of local"));
  EXPECT_EQ(out_, "first, whether the synchronous modes follow the same curve\n");
}

TEST_F(CompareTest, ShowsTheMedianOfTheRepeats) {
  speeds_ = {{"out/local-1", 100}, {"out/ps-async-1", 150}, {"out/local-2", 102}, {"out/ps-async-2", 170}};
  EXPECT_EQ(compare_modes("local,ps:async"), ExitCode::kSuccess);
  EXPECT_THAT(out_, AllOf(HasSubstr("101 [100 .. 102]"), HasSubstr("160 [150 .. 170]")));
}

TEST_F(CompareTest, LeavesATableAndAPageBesideItsRuns) {
  EXPECT_EQ(compare_modes("allreduce,ps:async"), ExitCode::kSuccess);
  std::ifstream csv("out/comparison.csv"), page("out/comparison.html");
  std::ostringstream rows, html;
  rows << csv.rdbuf(), html << page.rdbuf();
  EXPECT_THAT(rows.str(), HasSubstr("\"ps:async\",\"ps:async\",1,1,2,"));
  EXPECT_THAT(html.str(), HasSubstr("softmax on digits, 2 workers, batch 64 a worker"));
}

TEST_F(CompareTest, EndsWithTheFirstJobThatFails) {
  failures_["out/ps-async-1"].exit = ExitCode::kProcessLost;
  failures_["out/ps-async-1"].verdict = "worker 0 is gone";
  EXPECT_EQ(compare_modes("local,ps:async"), ExitCode::kProcessLost);
  EXPECT_EQ(outputs().back(), "out/ps-async-1");
  EXPECT_EQ(err_, "run_experiment: ps:async, round 1: worker 0 is gone\n");
}

TEST(RoundOrder, RunsEveryRowOnceInEveryRound) {
  for (std::size_t round = 0; round < 20; ++round) {
    EXPECT_THAT(round_order(4, 7, round), UnorderedElementsAre(0, 1, 2, 3));
  }
}

TEST(RoundOrder, IsTheSameForTheSameSeedAndAnotherInOtherRounds) {
  std::set<std::vector<std::size_t>> orders, of_another_seed;
  for (std::size_t round = 0; round < 20; ++round) {
    EXPECT_EQ(round_order(6, 7, round), round_order(6, 7, round));
    orders.insert(round_order(6, 7, round));
    of_another_seed.insert(round_order(6, 8, round));
  }
  EXPECT_GT(orders.size(), 15u);
  EXPECT_NE(orders, of_another_seed);
}

// With 3000 draws an order of three comes 500 times in the mean, with a deviation of 20.
TEST(RoundOrder, MakesEveryOrderAsLikely) {
  std::vector<std::vector<std::size_t>> drawn;
  for (std::size_t round = 0; round < 3000; ++round) drawn.push_back(round_order(3, 1, round));
  std::vector<std::size_t> order = {0, 1, 2};
  do {
    EXPECT_NEAR(static_cast<double>(std::ranges::count(drawn, order)), 500, 120);
  } while (std::ranges::next_permutation(order).found);
}

}  // namespace
}  // namespace syncopate::experiments
