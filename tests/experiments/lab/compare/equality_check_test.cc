#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "experiments/config/resolution.h"
#include "experiments/lab/compare/equality.h"
#include "experiments/lab/run/initial_weights.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Verdict = EqualityGap::Verdict;

// Two tensors, of 4 and of 2 weights; the arena has padding between them.
ParamLayout two_tensors() {
  ParamLayout layout;
  layout.add("first", {4});
  layout.add("second", {2});
  return layout;
}

// An arena with these values in the tensors.
std::vector<float> arena(float first, float second) {
  const ParamLayout layout = two_tensors();
  std::vector<float> values(layout.size());
  std::fill_n(values.begin(), 4, first);
  std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(layout.tensors()[1].range.begin), 2, second);
  return values;
}

TEST(EqualityGap, IsMeasuredByTheMovementOfEachTensor) {
  // The second has moved by a thousandth of what the first has, and is 2 % of that way off.
  const EqualityGap gap = equality_gap(two_tensors(), arena(1, 1), arena(2, 1.001f), arena(2, 1.001f + 2e-5f));
  EXPECT_EQ(gap.verdict, Verdict::kUnequal);
  EXPECT_EQ(gap.tensor, "second");
  EXPECT_NEAR(gap.gap, 0.02, 1e-3);
  EXPECT_NEAR(gap.movement, 1e-3, 1e-6);
}

TEST(EqualityGap, TakesWhatIsWithinTheToleranceAndNamesTheTensorThatIsFurthestOff) {
  const EqualityGap gap = equality_gap(two_tensors(), arena(0, 0), arena(1, 1), arena(1.0001f, 1.0009f));
  EXPECT_EQ(gap.verdict, Verdict::kEqual);
  EXPECT_EQ(gap.tensor, "second");
  EXPECT_NEAR(gap.gap, 9e-4, 1e-6);
  EXPECT_EQ(gap.movement, std::numeric_limits<double>::infinity());
}

TEST(EqualityGap, IsNotShownWhereATensorHasHardlyMoved) {
  for (const float second : {1.0f, 1 + 3e-5f}) {
    const EqualityGap gap = equality_gap(two_tensors(), arena(1, 1), arena(2, second), arena(2, second));
    EXPECT_EQ(gap.verdict, Verdict::kNotShown);
    EXPECT_EQ(gap.tensor, "second");
  }
}

TEST(EqualityGap, IsNotShownWhereATensorOfZerosStays) {
  EXPECT_EQ(equality_gap(two_tensors(), arena(1, 0), arena(2, 0), arena(2, 0)).verdict, Verdict::kNotShown);
}

TEST(EqualityGap, IsUnequalWhereOnlyOneOfBothHasMoved) {
  EXPECT_EQ(equality_gap(two_tensors(), arena(1, 1), arena(2, 1), arena(2, 1.1f)).verdict, Verdict::kUnequal);
  EXPECT_EQ(equality_gap(two_tensors(), arena(1, 0), arena(2, 0), arena(2, 0.1f)).verdict, Verdict::kUnequal);
}

TEST(EqualityGap, IsUnequalRatherThanNotShown) {
  const EqualityGap gap = equality_gap(two_tensors(), arena(1, 1), arena(2, 1), arena(2.01f, 1));
  EXPECT_EQ(gap.verdict, Verdict::kUnequal);
  EXPECT_EQ(gap.tensor, "first");
}

TEST(EqualityGap, IsInfiniteForOtherSizesAndForWhatIsNoNumber) {
  const EqualityGap size = equality_gap(two_tensors(), arena(1, 1), arena(2, 2), {});
  EXPECT_EQ(size.verdict, Verdict::kUnequal);
  EXPECT_EQ(size.gap, std::numeric_limits<double>::infinity());
  for (const float broken : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(equality_gap(two_tensors(), arena(1, 1), arena(2, 2), arena(2, broken)).verdict, Verdict::kUnequal);
    EXPECT_EQ(equality_gap(two_tensors(), arena(1, 1), arena(2, broken), arena(2, broken)).verdict, Verdict::kUnequal);
  }
}

TEST(EqualityJob, IsNotWatched) {
  RunRequest base;
  base.tensorboard = true;
  base.metrics = 9100;
  base.trace.emplace();
  const RunRequest job = equality_job(base);
  EXPECT_FALSE(job.tensorboard);
  EXPECT_FALSE(job.metrics.has_value());
  EXPECT_FALSE(job.trace.has_value());
}

TEST(EqualityJob, RaisesAWeightDecaySoThatOneLeftOutShowsAndAddsNone) {
  RunRequest base;
  EXPECT_EQ(equality_job(base).weight_decay, 0);
  base.weight_decay = 1e-6;
  EXPECT_GT(equality_job(base).weight_decay, 1e-6);
  base.weight_decay = 0.5;
  EXPECT_EQ(equality_job(base).weight_decay, 0.5);
}

// The check, with jobs that end as a test says instead of running.
class EqualityCheck : public testing::Test {
 protected:
  EqualityOutcome check() {
    const Resolver resolver = [](const RunRequest& request) { return resolve(request, {}, ""); };
    return check_equality(base_, modes_, ways_, "there", resolver, [this](const ResolvedRun& config) {
      outputs_.push_back(config.output);
      JobResult result;
      if (failures_.contains(config.output)) return failures_[config.output];
      result.rows = rows_;
      result.weights = initial_weights(config, rows_)->values;
      const double gap = gaps_[config.output];
      for (float& weight : result.weights) weight += static_cast<float>(movement_ * (1 + gap));
      return result;
    });
  }
  static RunRequest job() {
    RunRequest config;
    config.mode = Mode::kAllreduce;
    config.model = "softmax";
    config.workers = 2;
    return config;
  }

  RunRequest base_ = job();
  std::vector<Mode> modes_ = {Mode::kAllreduce};  // of the comparison's rows
  std::set<std::string> ways_;                    // of these
  TableKeys rows_;                                // that were touched, of a model with tables
  double movement_ = 1;
  std::map<std::string, double> gaps_;  // by folder, of the movement
  std::map<std::string, JobResult> failures_;
  std::vector<std::string> outputs_;
};

TEST_F(EqualityCheck, SaysWhatItComparedHowAndWhatItFound) {
  gaps_["there/ps-sync"] = 1e-4;
  const EqualityOutcome outcome = check();
  EXPECT_EQ(outcome.exit, ExitCode::kSuccess);
  EXPECT_TRUE(outcome.is_shown);
  EXPECT_THAT(outputs_, ElementsAre("there/local", "there/allreduce", "there/ps-sync"));
  EXPECT_EQ(outcome.line,
            "equality: local, allreduce and ps:sync follow the same curve: after 30 steps of adam at a rate of 0.0001 "
            "no tensor lies further apart than 1e-04 of the way that it has gone (dense1.bias; tolerance 1e-03)");
}

TEST_F(EqualityCheck, TakesAShardedStateWhereARowHasOne) {
  modes_.push_back(Mode::kSharded);
  EXPECT_THAT(check().line,
              testing::StartsWith("equality: local, allreduce, sharded and ps:sync follow the same curve"));
}

TEST_F(EqualityCheck, TakesDividedModelsWhereRowsHaveThemUnlessTheyNormaliseByBatches) {
  base_.workers = 4;
  base_.model = "mlp:784-10-10-10-10";
  ways_ = {"allreduce:pipeline:2", "allreduce:pipeline:4", "allreduce:tensor:2"};
  check();
  EXPECT_THAT(outputs_, ElementsAre("there/local", "there/allreduce", "there/ps-sync", "there/allreduce-pipeline-2",
                                    "there/allreduce-pipeline-4", "there/allreduce-tensor-2"));
  outputs_.clear();
  base_.model = "resnet20";
  EXPECT_THAT(check().line,
              HasSubstr("; allreduce:pipeline:4 is left out, whose batch norms see a microbatch at a time"));
  EXPECT_THAT(outputs_, ElementsAre("there/allreduce", "there/ps-sync"));
}

// Whose batches are cut only if that is asked for.
TEST_F(EqualityCheck, TakesWeightsOnDemandWhereARowHasThemUnlessItNormalisesByMicrobatches) {
  ways_ = {"sharded:on-demand"};
  check();
  EXPECT_THAT(outputs_, ElementsAre("there/local", "there/allreduce", "there/ps-sync", "there/sharded-on-demand"));
  outputs_.clear();
  base_.model = "resnet20";
  check();
  EXPECT_THAT(outputs_, ElementsAre("there/allreduce", "there/ps-sync", "there/sharded-on-demand"));
  outputs_.clear();
  base_.microbatches = 2;
  EXPECT_THAT(check().line, HasSubstr("; sharded:on-demand is left out, whose batch norms see a microbatch at a time"));
  EXPECT_THAT(outputs_, ElementsAre("there/allreduce", "there/ps-sync"));
}

TEST_F(EqualityCheck, TakesServersOfTablesWhereARowHasThem) {
  base_.model = "ncf:4";
  base_.dataset = "zipf-ratings";
  base_.table_rows = 100;
  rows_ = {{3}, {1, 4}};
  modes_.push_back(Mode::kHybrid);
  check();
  EXPECT_THAT(outputs_, ElementsAre("there/local", "there/allreduce", "there/ps-sync", "there/hybrid"));
}

TEST_F(EqualityCheck, NamesTheModeAndTheTensorThatAreOffWithEachSeed) {
  for (const std::string seed : {"", "-seed-2", "-seed-3"}) {
    gaps_["there/allreduce" + seed] = 2e-3;
    gaps_["there/ps-sync" + seed] = 5e-3;
  }
  const EqualityOutcome outcome = check();
  EXPECT_EQ(outputs_.size(), 9u);
  EXPECT_EQ(outcome.exit, ExitCode::kUnequal);
  EXPECT_FALSE(outcome.is_shown);
  EXPECT_THAT(outcome.line, AllOf(HasSubstr("ps:sync does not follow the curve of local"),
                                  HasSubstr("with each of 3 seeds"), HasSubstr("dense1."), HasSubstr(" by 0.005 of")));
}

TEST_F(EqualityCheck, TakesASeedWithWhichRoundingHasGrownForNoFaultAndSaysSo) {
  gaps_["there/ps-sync"] = 0.1;
  const EqualityOutcome outcome = check();
  EXPECT_THAT(outputs_, ElementsAre("there/local", "there/allreduce", "there/ps-sync", "there/local-seed-2",
                                    "there/allreduce-seed-2", "there/ps-sync-seed-2"));
  EXPECT_EQ(outcome.exit, ExitCode::kSuccess);
  EXPECT_TRUE(outcome.is_shown);
  EXPECT_THAT(outcome.line, HasSubstr(", with seed 2"));
}

TEST_F(EqualityCheck, IsNotShownWhereNothingMoves) {
  movement_ = 0;
  const EqualityOutcome outcome = check();
  EXPECT_EQ(outcome.exit, ExitCode::kSuccess);
  EXPECT_FALSE(outcome.is_shown);
  EXPECT_THAT(outcome.line, AllOf(HasSubstr("equality: not shown"), HasSubstr("dense1.")));
}

TEST_F(EqualityCheck, EndsWithTheFirstJobThatFails) {
  failures_["there/allreduce"].exit = ExitCode::kProcessLost;
  failures_["there/allreduce"].verdict = "worker 0 is gone";
  const EqualityOutcome outcome = check();
  EXPECT_EQ(outcome.exit, ExitCode::kProcessLost);
  EXPECT_EQ(outcome.line, "worker 0 is gone");
  EXPECT_THAT(outputs_, ElementsAre("there/local", "there/allreduce"));
}

TEST(InitialWeights, AreThoseOfTheModelWithTheRowsThatAreAskedFor) {
  RunRequest config;
  config.model = "ncf:8";
  config.dataset = "zipf-ratings";
  config.table_rows = 100;
  const Result<ModelWeights> few = initial_weights(config, {{3}, {1, 4}});
  const Result<ModelWeights> more = initial_weights(config, {{2, 3}, {4}});
  ASSERT_TRUE(few.ok() && more.ok()) << few.status().message();
  const auto values = [](const Result<ModelWeights>& weights, std::size_t from_last, std::size_t row) {
    const TensorSpec& tensor = weights->layout.tensors()[weights->layout.tensors().size() - from_last];
    const auto begin = weights->values.begin() + static_cast<std::ptrdiff_t>(tensor.range.begin + row * tensor.width());
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(tensor.width()));
  };
  EXPECT_EQ(values(few, 2, 0), values(more, 2, 1));  // row 3 of the first table
  EXPECT_EQ(values(few, 1, 1), values(more, 1, 0));  // row 4 of the second
  EXPECT_NE(values(few, 1, 0), values(few, 1, 1));
  EXPECT_FALSE(initial_weights(config, {}).ok());
}

}  // namespace
}  // namespace syncopate::experiments
