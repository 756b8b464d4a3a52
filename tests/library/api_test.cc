// The library as its header shows it, with one rank; tests/library/installed/run has two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/optimizer/update_rules.h"
#include "library/syncopate/syncopate.h"

namespace syncopate::api {
namespace {

using testing::Each;
using testing::HasSubstr;

Result<Job> job_of_one() { return init({.rank = 0, .size = 1}); }

ParamLayout small_layout() {
  ParamLayout layout;
  layout.add("first", {3, 5});
  layout.add("second", {7});
  return layout;
}

class ApiStrategyTest : public testing::TestWithParam<Mode> {};

TEST_P(ApiStrategyTest, MakesTheUpdateOfEachStep) {
  Result<Job> job = job_of_one();
  ASSERT_TRUE(job.ok()) << job.status().message();
  Result<Strategy> strategy = job->connect(small_layout(), {.mode = GetParam()});
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  for (float& weight : strategy->weights(1)) weight = 1;
  ASSERT_TRUE(strategy->join().ok());
  for (int step = 0; step < 3; ++step) {
    strategy->begin_step(0.5);
    for (const std::size_t tensor : {0, 1}) {
      for (float& gradient : strategy->gradients(tensor)) gradient = 0.5f;
      strategy->gradient_ready(tensor);
    }
    const Result<StepStats> stats = strategy->finish_step();
    ASSERT_TRUE(stats.ok()) << stats.status().message();
  }
  EXPECT_THAT(strategy->weights(0), Each(-0.75f));
  EXPECT_THAT(strategy->weights(1), Each(0.25f));
  const Status left = strategy->leave();
  EXPECT_TRUE(left.ok()) << left.message();
  EXPECT_TRUE(job->leave().ok());
}

void make_step(Strategy& strategy, double rate) {
  strategy.begin_step(rate);
  for (const std::size_t tensor : {0, 1}) {
    for (float& gradient : strategy.gradients(tensor)) gradient = 0.5f;
    strategy.gradient_ready(tensor);
  }
}

TEST_P(ApiStrategyTest, HasEachRuleThatARunHas) {
  for (const UpdateRule& rule : kUpdateRules) {
    Result<Job> job = job_of_one();
    ASSERT_TRUE(job.ok());
    Result<Strategy> strategy = job->connect(small_layout(), {.mode = GetParam(), .optimizer = {.rule = rule.name}});
    ASSERT_TRUE(strategy.ok()) << strategy.status().message();
    ASSERT_TRUE(strategy->join().ok());
    const ::syncopate::Optimizer optimizer({.kind = rule.kind, .nesterov = rule.nesterov});
    OptimizerState state({.kind = rule.kind}, 1);
    float weight = 0;
    const float gradient = 0.5f;
    for (int step = 1; step <= 3; ++step) {
      optimizer.apply({&weight, 1}, {&gradient, 1}, state, 0, {.learning_rate = 0.5, .number = step});
      make_step(*strategy, 0.5);
      ASSERT_TRUE(strategy->finish_step().ok());
    }
    EXPECT_THAT(strategy->weights(0), Each(weight)) << rule.name;
    EXPECT_TRUE(strategy->leave().ok());
  }
}

TEST_P(ApiStrategyTest, KeepsTheOneRateOfFtrl) {
  Result<Job> job = job_of_one();
  Result<Strategy> strategy =
      job->connect(small_layout(), {.mode = GetParam(), .optimizer = {.rule = "ftrl", .l1 = 0.1, .beta = 2}});
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  ASSERT_TRUE(strategy->join().ok());
  make_step(*strategy, 0.5);
  ASSERT_TRUE(strategy->finish_step().ok());
  make_step(*strategy, 0.25);
  EXPECT_EQ(strategy->finish_step().status().message(),
            "a learning rate of 0.25, after one of 0.5: ftrl has one rate in all steps");
}

TEST_P(ApiStrategyTest, EndsAStepWithANanWhereThatIsAskedForAndNamesRankStepAndTensor) {
  Result<Job> job = job_of_one();
  ASSERT_TRUE(job.ok()) << job.status().message();
  Result<Strategy> strategy = job->connect(small_layout(), {.mode = GetParam(), .on_nan = "stop"});
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  ASSERT_TRUE(strategy->join().ok());
  for (int step = 0; step < 2; ++step) {
    strategy->begin_step(0.5);
    if (step == 1) strategy->gradients(1)[6] = std::numeric_limits<float>::quiet_NaN();
    for (const std::size_t tensor : {0, 1}) strategy->gradient_ready(tensor);
    const Result<StepStats> stats = strategy->finish_step();
    EXPECT_EQ(stats.ok(), step == 0);
    if (step == 0) continue;
    EXPECT_EQ(stats.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(stats.status().message(), HasSubstr("step 1: on rank 0 the gradient of second is nan"));
  }
}

TEST_P(ApiStrategyTest, SaysOnceOfANanThatItGoesOnWith) {
  Result<Job> job = job_of_one();
  ASSERT_TRUE(job.ok()) << job.status().message();
  Result<Strategy> strategy = job->connect(small_layout(), {.mode = GetParam()});
  ASSERT_TRUE(strategy.ok()) << strategy.status().message();
  ASSERT_TRUE(strategy->join().ok());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  for (int step = 0; step < 3; ++step) {
    strategy->begin_step(0.5);
    strategy->gradients(0)[2] = std::numeric_limits<float>::infinity();
    for (const std::size_t tensor : {0, 1}) strategy->gradient_ready(tensor);
    EXPECT_TRUE(strategy->finish_step().ok());
  }
  const std::string told = testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  const std::string line = "step 0: on rank 0 the gradient of first is inf";
  EXPECT_THAT(told, HasSubstr(line));
  EXPECT_EQ(told.find("on rank 0", told.find(line) + line.size()), std::string::npos) << told;
  EXPECT_TRUE(strategy->leave().ok());
  EXPECT_TRUE(job->leave().ok());
}

INSTANTIATE_TEST_SUITE_P(Modes, ApiStrategyTest, testing::Values(Mode::kAllReduce, Mode::kParameterServers));

TEST(ApiStrategy, MayFollowAnother) {
  for (int time = 0; time < 3; ++time) {
    Result<Job> job = job_of_one();
    ASSERT_TRUE(job.ok());
    for (int strategies = 0; strategies < 2; ++strategies) {
      Result<Strategy> strategy = job->connect(small_layout());
      ASSERT_TRUE(strategy.ok());
      ASSERT_TRUE(strategy->join().ok());
      ASSERT_TRUE(strategy->leave().ok());
    }
    ASSERT_TRUE(job->leave().ok());
  }
}

TEST(ApiStrategy, SaysWhichCallWasWrong) {
  Result<Job> job = job_of_one();
  ASSERT_TRUE(job.ok());
  const auto joined = [&] {
    Result<Strategy> strategy = job->connect(small_layout());
    EXPECT_TRUE(strategy->join().ok());
    return strategy;
  };
  Result<Strategy> early = job->connect(small_layout());
  EXPECT_EQ(early->finish_step().status().message(), "finish_step() before join(): it belongs within a step");
  Result<Strategy> missing = joined();
  missing->begin_step(1);
  missing->gradient_ready(0);
  EXPECT_THAT(missing->finish_step().status().message(), HasSubstr("without the gradient of tensor 1, 'second'"));
  EXPECT_THAT(missing->leave().message(), HasSubstr("after leave() or a failure"));
  Result<Strategy> twice = joined();
  twice->begin_step(1);
  twice->gradient_ready(0);
  twice->gradient_ready(0);
  twice->gradient_ready(1);
  EXPECT_EQ(twice->finish_step().status().message(), "gradient_ready(0), 'first', was called before in this step");
  Result<Strategy> unknown = joined();
  unknown->begin_step(1);
  unknown->gradient_ready(2);
  EXPECT_EQ(unknown->finish_step().status().message(), "gradient_ready(2): tensors are 0 to 1");
}

TEST(ApiStrategy, RefusesOptionsThatNoJobCanHave) {
  Result<Job> job = job_of_one();
  ASSERT_TRUE(job.ok());
  const auto refusal = [&](const ParamLayout& layout, const StrategyOptions& options) {
    const Status status = job->connect(layout, options).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  };
  constexpr Mode kServers = Mode::kParameterServers;
  EXPECT_THAT(refusal({}, {}), HasSubstr("no tensors"));
  ParamLayout empty;
  empty.add("empty", {4, 0});
  EXPECT_THAT(refusal(empty, {}), HasSubstr("'empty' has a dimension of 0: each must be at least 1"));
  EXPECT_THAT(refusal(small_layout(), {.optimizer = {.rule = "lion"}}),
              HasSubstr("optimizer='lion': must be sgd, momentum, nesterov, adam, adamw, adagrad, ftrl, rmsprop, "
                        "adadelta, adamax, radam, lars or lamb"));
  EXPECT_THAT(refusal(small_layout(), {.compress = "zip"}), HasSubstr("zip"));
  EXPECT_THAT(refusal(small_layout(), {.on_nan = "skip"}), HasSubstr("on_nan='skip': must be stop or go-on"));
  EXPECT_THAT(refusal(small_layout(), {.mode = kServers, .servers = 0}), HasSubstr("must be 1 to 1024"));
  EXPECT_THAT(refusal(small_layout(), {.mode = kServers, .consistency = "never"}), HasSubstr("never"));
  EXPECT_THAT(refusal(small_layout(), {.mode = kServers, .server_program = "/nowhere/server"}),
              HasSubstr("/nowhere/server: No such file or directory"));
}

TEST(ApiStrategy, RefusesOptionsThatMeanNothing) {
  Result<Job> job = job_of_one();
  ASSERT_TRUE(job.ok());
  const auto refusal = [&](const StrategyOptions& options) {
    const Status status = job->connect(small_layout(), options).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    return status.message();
  };
  EXPECT_THAT(refusal({.consistency = "async"}), HasSubstr("allreduce is always synchronous"));
  EXPECT_THAT(refusal({.servers = 2}), HasSubstr("are for parameter servers"));
  EXPECT_THAT(refusal({.server_program = "/bin/true"}), HasSubstr("are for parameter servers"));
  EXPECT_THAT(
      refusal({.optimizer = {.rule = "adam", .momentum = 0.9}}),
      HasSubstr("momentum=0.9 means nothing to adam, which has beta1, beta2, epsilon, weight_decay: leave it out"));
  EXPECT_THAT(refusal({.optimizer = {.rule = "momentum", .momentum = -0.5}}), HasSubstr("momentum=-0.5: must be"));
}

TEST_P(ApiStrategyTest, RefusesARateAtWhichNoStepCanBeMade) {
  for (const double rate : {std::nan(""), -1.0, HUGE_VAL}) {
    Result<Job> job = job_of_one();
    ASSERT_TRUE(job.ok());
    Result<Strategy> strategy = job->connect(small_layout(), {.mode = GetParam()});
    ASSERT_TRUE(strategy.ok() && strategy->join().ok());
    strategy->begin_step(rate);
    for (const std::size_t tensor : {0, 1}) strategy->gradient_ready(tensor);
    const Status status = strategy->finish_step().status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("must be finite and at least 0"));
    EXPECT_THAT(strategy->weights(0), Each(0.0f));
  }
}

TEST(ApiJob, SaysWhatIsWrongWithItsPlace) {
  EXPECT_THAT(init({.rank = 2, .size = 2}).status().message(), HasSubstr("RANK=2: must be below WORLD_SIZE=2"));
  EXPECT_THAT(init({.rank = 0, .size = 2, .address = "nowhere"}).status().message(), HasSubstr("must be HOST:PORT"));
  EXPECT_THAT(init({.rank = 0, .size = 1, .timeout = std::chrono::milliseconds(0)}).status().message(),
              HasSubstr("must be above 0"));
}

TEST(ApiJob, NamesTheRankThatHasNotCome) {
  const Status status =
      init({.rank = 0, .size = 2, .address = "127.0.0.1:0", .timeout = std::chrono::milliseconds(100)}).status();
  EXPECT_EQ(status.code(), Code::kPeerLost);
  ASSERT_NE(status.lost(), nullptr);
  EXPECT_EQ(status.lost()->operation, "joining the job");
  EXPECT_THAT(status.message(), HasSubstr("no word from rank 1"));
}

TEST(ApiCollective, SumsAndBroadcasts) {
  Result<Job> job = job_of_one();
  ASSERT_TRUE(job.ok());
  std::vector<float> values{1, 2};
  ASSERT_TRUE(job->collective().sum(values, 0.5f).ok());
  EXPECT_THAT(values, testing::ElementsAre(0.5f, 1.0f));
  EXPECT_TRUE(job->collective().broadcast(std::span(values)).ok());
  EXPECT_TRUE(job->collective().barrier().ok());
  EXPECT_EQ(job->collective().broadcast(std::span(values), 1).message(), "broadcast from rank 1: ranks are 0 to 0");
}

}  // namespace
}  // namespace syncopate::api
