#include "experiments/config/compare_line.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/config/comparison.h"
#include "experiments/config/modes.h"
#include "experiments/config/toml.h"
#include "ps/policy/consistency.h"
#include "tests/experiments/config/typed_line.h"
#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kModes = "--modes=local,allreduce,ps:sync,ps:async,ps:softsync:2";

std::vector<double> rates_of(const std::vector<const char*>& flags) {
  const Result<CommandLine> line = parse(flags);
  EXPECT_TRUE(line.ok()) << line.status().message();
  std::vector<double> rates;
  for (const ComparedRun& run : line->runs) rates.push_back(*run.config.learning_rate);
  return rates;
}

TEST(CompareLine, SaysWhereAModeIsAddedThatAnOptionNeeds) {
  EXPECT_EQ(refusal({"compare", "--servers=2", "--modes=allreduce"}),
            "--servers=2: has an effect only with --mode=ps or --mode=hybrid; leave it out or add that, as a mode of "
            "--modes");
}

std::vector<std::string> labels_of(const CommandLine& line) {
  std::vector<std::string> labels;
  for (const ComparedRun& run : line.runs) labels.push_back(run.label);
  return labels;
}

TEST(CompareLine, TakesEveryModeThatTheJobCanRun) {
  const Result<CommandLine> dense = parse({"compare", "--modes=all", "--workers=2"});
  ASSERT_TRUE(dense.ok()) << dense.status().message();
  EXPECT_THAT(labels_of(*dense), AllOf(Contains("local"), Contains("sharded:3"), Contains("ps:easgd:8")));
  EXPECT_THAT(dense->left_out, ElementsAre(StartsWith("hybrid: left out: --mode=hybrid: its servers keep row-sparse")));
  const Result<CommandLine> sparse = parse({"compare", "--modes=all", "--model=ncf", "--dataset=zipf-ratings"});
  ASSERT_TRUE(sparse.ok()) << sparse.status().message();
  EXPECT_THAT(labels_of(*sparse), AllOf(Contains("hybrid"), Not(Contains("sharded:1"))));
  EXPECT_THAT(sparse->left_out, Contains(StartsWith("sharded:1: left out: ")));
  EXPECT_THAT(refusal({"compare", "--modes=all,ps:sync"}), HasSubstr("give it by itself"));
}

TEST(CompareLine, KnowsARowOfEachModeAndOfEachConsistency) {
  const std::string all = fmt::format(",{}", kAllModes);
  for (const ModeTraits& mode : kModeTraits) EXPECT_THAT(all, HasSubstr(fmt::format(",{}", mode.name)));
  for (const std::string& kind : ps::consistency_names([](const ps::ConsistencyTraits&) { return true; })) {
    EXPECT_THAT(all, HasSubstr(",ps:" + kind));
  }
}

// In which it trains what all workers train, by itself.
TEST(CompareLine, GivesLocalTheTimeOfItsBatch) {
  const Result<CommandLine> line = parse(
      {"compare", "--modes=local,allreduce", "--workers=4", "--cluster=simulated", "--compute=10ms", "--shape=1gbit"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->runs[0].config.compute->step, std::chrono::milliseconds(40));
  EXPECT_EQ(line->runs[1].config.compute->step, std::chrono::milliseconds(10));
}

TEST(CompareLine, GivesEachRowTheRateOfItsUpdate) {
  EXPECT_THAT(rates_of({"compare", kModes, "--workers=4", "--optimizer=sgd", "--learning-rate=0.1"}),
              ElementsAre(0.1, 0.1, 0.1, 0.025, 0.05));
  EXPECT_THAT(rates_of({"compare", kModes, "--workers=4", "--optimizer=sgd", "--rate-rule=per-update"}),
              ElementsAre(0.1, 0.1, 0.1, 0.1, 0.1));
  EXPECT_EQ(refusal({"compare", "--rate-rule=none"}), "--rate-rule=none: rate rule must be per-sample or per-update");
  EXPECT_THAT(refusal({"--rate-rule=per-update"}), StartsWith("--rate-rule: an option of compare or study"));
}

// Each row has a base of its own where the rate, or the optimizer whose usual one it is, is varied.
TEST(CompareLine, RelatesRatesToTheFirstValuesUpdate) {
  EXPECT_THAT(rates_of({"compare", "--modes=allreduce,ps:async", "--optimizer=sgd", "--vary=batch-size=32,64"}),
              ElementsAre(0.1, 0.2, 0.05, 0.1));
  EXPECT_THAT(rates_of({"compare", "--modes=ps:sync", "--optimizer=sgd", "--vary=workers=2,4"}), ElementsAre(0.1, 0.2));
  EXPECT_THAT(rates_of({"compare", "--modes=ps:async", "--vary=optimizer=sgd,adam"}), ElementsAre(0.05, 0.0005));
  EXPECT_THAT(rates_of({"compare", "--modes=ps:async", "--vary=learning-rate=0.1,0.4"}), ElementsAre(0.05, 0.2));
}

// The record of a row reproduces it alone.
TEST(CompareLine, PutsTheRateIntoTheRowsOwnRecord) {
  const Result<CommandLine> line = parse({"compare", "--modes=ps:async", "--workers=4", "--optimizer=sgd"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  const Result<ResolvedRun> again = from_toml_text(to_toml(resolved(line->runs[0].config)));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->learning_rate, 0.025);
}

TEST(CompareLine, LeavesLinearToTheRateRule) {
  const char* modes = "--modes=allreduce,ps:sync";
  EXPECT_THAT(refusal({"compare", modes, "--lr-schedule=linear"}),
              StartsWith("--lr-schedule=linear: --rate-rule=per-sample, the default, already gives each row a rate"));
  EXPECT_EQ(refusal({"compare", modes, "--lr-schedule=linear", "--rate-rule=per-update"}), "accepted");
  const Result<CommandLine> line = parse({"compare", modes, "--vary=lr-schedule=constant,linear"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->runs.size(), 2u);
  EXPECT_THAT(line->left_out, ElementsAre(StartsWith("allreduce lr-schedule=linear: left out: "),
                                          StartsWith("ps:sync lr-schedule=linear: left out: ")));
}

TEST(CompareLine, VariesSeveralOptions) {
  const Result<CommandLine> line =
      parse({"compare", "--modes=ps:async", "--vary=batch-size=32,64", "--vary=servers=1,2"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(line->varied, ElementsAre("batch-size", "servers"));
  ASSERT_EQ(line->runs.size(), 4u);
  EXPECT_EQ(line->runs[1].label, "ps:async batch-size=32 servers=2");
  EXPECT_EQ(line->config.batch_size, 32);
  EXPECT_THAT(refusal({"compare", "--servers=2", "--vary=servers=1,2"}), HasSubstr("given beside --vary=servers=1,2"));
  EXPECT_THAT(refusal({"compare", "--vary=servers=1,2", "--vary=servers=4"}), HasSubstr("servers is varied twice"));
  EXPECT_THAT(refusal({"compare", "--steps=100", "--vary=epochs=1,2"}), HasSubstr("cannot stand beside"));
}

TEST(CompareLine, TakesAGridOfRates) {
  const Result<CommandLine> line = parse({"compare", "--tune-rate=0.3,0.03,0.1"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(line->tune_rate->values, ElementsAre(0.03, 0.1, 0.3));
  EXPECT_THAT(rates_to_try(*line->tune_rate, 0.5), ElementsAre(0.03, 0.1, 0.3));
  const Result<CommandLine> factors = parse({"compare", "--learning-rate=0.1", "--tune-rate=x0.25,x1,x4"});
  ASSERT_TRUE(factors.ok()) << factors.status().message();
  EXPECT_THAT(rates_to_try(*factors->tune_rate, 0.1), ElementsAre(0.025, 0.1, 0.4));
  for (const char* wrong : {"--tune-rate=0.1", "--tune-rate=0.1,x2", "--tune-rate=0.1,0.1", "--tune-rate=0,1",
                            "--tune-rate=1,nan", "--tune-rate=a,b", "--tune-rate=1,2000"}) {
    EXPECT_THAT(refusal({"compare", wrong}), HasSubstr("different rates above 0 and up to 1000")) << wrong;
  }
  EXPECT_THAT(refusal({"compare", "--tune-rate=0.1,1", "--learning-rate=0.1"}),
              StartsWith("--learning-rate=0.1: has no"));
  EXPECT_THAT(refusal({"compare", "--tune-rate=0.1,1", "--vary=learning-rate=0.1,1"}), HasSubstr("leave one out"));
}

TEST(CompareLine, TakesFoldersOfFinishedRunsAlone) {
  const Result<CommandLine> line = parse({"compare", "runs/a", "runs/b", "--output=there"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->action, CommandLine::Action::kCompareFinished);
  EXPECT_THAT(line->folders, ElementsAre("runs/a", "runs/b"));
  EXPECT_EQ(line->config.output, "there");
  EXPECT_EQ(line->typed, "run_experiment compare runs/a runs/b --output=there");
  EXPECT_THAT(refusal({"compare", "runs/a"}), HasSubstr("name two or more"));
  EXPECT_THAT(refusal({"compare", "runs/a", "runs/b", "--workers=2"}), StartsWith("--workers=2: runs/a is a finished"));
  EXPECT_THAT(refusal({"compare", "runs/a", "runs/b", "--modes=local"}), HasSubstr("compared as they are"));
  EXPECT_THAT(refusal({"compare", "runs/a", "--sevrers=2"}),
              AllOf(StartsWith("--sevrers: no such flag"), HasSubstr("did you mean --servers?")));
}

TEST(CompareLine, TakesRoundsUntilTheVerdictIsClearUnlessTheyAreGiven) {
  const auto rounds_of = [](std::vector<const char*> words) {
    words.insert(words.begin(), {"compare", "--modes=allreduce,ps:async"});
    const Result<CommandLine> line = parse(words);
    return line.ok() ? line->auto_rounds : std::optional<AutoRounds>(AutoRounds{.margin = -1});
  };
  ASSERT_TRUE(rounds_of({}));
  EXPECT_EQ(rounds_of({})->seconds, 60);
  EXPECT_EQ(rounds_of({})->margin, 0.02);
  EXPECT_EQ(rounds_of({"--repeat-limit=2min"})->seconds, 120);
  EXPECT_EQ(rounds_of({"--repeat=auto:1%"})->margin, 0.01);
  EXPECT_EQ(rounds_of({"--repeat=auto"})->seconds, std::nullopt);
  EXPECT_FALSE(rounds_of({"--repeat=3"}));
  EXPECT_FALSE(rounds_of({"--vary=batch-size=32,64"})) << "one round of each";
  EXPECT_EQ(refusal({"compare", "--repeat=3", "--repeat-limit=9s"}),
            "--repeat-limit=9s: ends the rounds of --repeat=auto; leave it out, or leave --repeat out");
  EXPECT_THAT(refusal({"compare", "--repeat-limit=0.5"}), HasSubstr("--repeat-limit=0.5: must be 1 to 86400 seconds"));
}

TEST(CompareLine, RemembersItselfForAShell) {
  const Result<CommandLine> line = parse({"compare", "--modes=ps:sync", "--vary=straggler=none;0:2x,1:2x"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->typed, "run_experiment compare --modes=ps:sync '--vary=straggler=none;0:2x,1:2x'");
}

}  // namespace
}  // namespace syncopate::experiments
