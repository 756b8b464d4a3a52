// The options of the update rules, and of how gradients of tables go round.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/config/command_line.h"
#include "experiments/config/resolution.h"
#include "experiments/config/toml.h"
#include "tests/experiments/config/typed_line.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

OptimizerConfig rule_of(std::vector<const char*> flags) {
  const Result<CommandLine> line = parse(std::move(flags));
  EXPECT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(to_toml(*from_toml_text(to_toml(presumed(line->config)))), to_toml(presumed(line->config)));
  return optimizer_of(presumed(line->config));
}

TEST(OptimizerOptions, GiveAdagradItsFigures) {
  const OptimizerConfig rule =
      rule_of({"--optimizer=adagrad", "--initial-accumulator=0.1", "--epsilon=1e-10", "--weight-decay=0.5"});
  EXPECT_EQ(rule.kind, OptimizerKind::kAdagrad);
  EXPECT_EQ(rule.initial_accumulator, 0.1f);
  EXPECT_EQ(rule.epsilon, 1e-10f);
  EXPECT_EQ(rule.weight_decay, 0.5f);
  EXPECT_EQ(traits_of(OptimizerChoice::kAdagrad).usual_rate, 0.01);
  EXPECT_THAT(refusal({"--optimizer=adam", "--initial-accumulator=0.1"}), HasSubstr("only with --optimizer=adagrad"));
}

TEST(OptimizerOptions, GiveRmspropItsFigures) {
  const OptimizerConfig rule = rule_of({"--optimizer=rmsprop", "--rho=0.5", "--momentum=0.25", "--epsilon=1e-4"});
  EXPECT_EQ(rule.kind, OptimizerKind::kRmsprop);
  EXPECT_EQ(rule.rho, 0.5f);
  EXPECT_EQ(rule.momentum, 0.25f);
  EXPECT_EQ(rule.epsilon, 1e-4f);
  EXPECT_THAT(refusal({"--optimizer=adam", "--rho=0.5"}), HasSubstr("only with --optimizer=rmsprop or adadelta"));
  EXPECT_THAT(refusal({"--optimizer=radam", "--adam-freeze-variance=5"}), HasSubstr("only with --optimizer=adam"));
}

TEST(OptimizerOptions, PlaceWholeTensorsWhereTheRuleNeedsThem) {
  const OptimizerConfig rule = rule_of({"--optimizer=lars", "--trust-coefficient=0.5", "--momentum=0.25"});
  EXPECT_EQ(rule.kind, OptimizerKind::kLars);
  EXPECT_EQ(rule.trust_coefficient, 0.5f);
  EXPECT_EQ(rule.momentum, 0.25f);
  for (const char* optimizer : {"--optimizer=lars", "--optimizer=lamb"}) {
    const Result<CommandLine> line = parse({"--mode=ps", "--servers=2", optimizer});
    ASSERT_TRUE(line.ok()) << line.status().message();
    const ps::Sharding sharding = sharding_of(presumed(line->config));
    EXPECT_EQ(sharding.policy, ps::ShardingPolicy::kWhole);
    EXPECT_EQ(sharding.chunk_bytes, ps::kUncut);
    EXPECT_EQ(refusal({"--mode=ps", "--servers=2", optimizer, "--sharding=tensor"}), "accepted");
    EXPECT_THAT(refusal({"--mode=ps", "--servers=2", optimizer, "--sharding=balanced"}),
                StartsWith("--sharding=balanced: must be whole or tensor with --optimizer=la"));
    EXPECT_THAT(refusal({"--mode=ps", optimizer, "--chunk-bytes=65536"}), HasSubstr("whose chunks are whole tensors"));
    EXPECT_THAT(refusal({"--model=ncf", "--dataset=ratings", optimizer}), HasSubstr("or --embeddings=dense"));
  }
  EXPECT_THAT(refusal({"--optimizer=lamb", "--trust-coefficient=0.5"}), HasSubstr("only with --optimizer=lars"));
}

TEST(OptimizerOptions, GiveFtrlItsFigures) {
  const OptimizerConfig rule = rule_of({"--optimizer=ftrl", "--l1=0.5", "--l2=0.25", "--ftrl-beta=2"});
  EXPECT_EQ(rule.kind, OptimizerKind::kFtrl);
  EXPECT_EQ(rule.l1, 0.5f);
  EXPECT_EQ(rule.l2, 0.25f);
  EXPECT_EQ(rule.beta, 2.0f);
  EXPECT_EQ(traits_of(OptimizerChoice::kFtrl).usual_rate, 0.1);
  EXPECT_THAT(refusal({"--optimizer=sgd", "--l1=0.1"}), HasSubstr("only with --optimizer=ftrl"));
  EXPECT_THAT(refusal({"--optimizer=ftrl", "--weight-decay=0.1"}), HasSubstr("any --optimizer but ftrl"));
}

TEST(OptimizerOptions, RefuseFtrlARateThatChanges) {
  EXPECT_EQ(refusal({"--lr-schedule=cosin"}),
            "--lr-schedule=cosin: 'cosin' is none of constant, cosine, step:EPOCHS:FACTOR, linear, warmup:EPOCHS");
  EXPECT_EQ(refusal({"--optimizer=ftrl", "--lr-schedule=constant,linear"}), "accepted");
  EXPECT_EQ(refusal({"--optimizer=ftrl", "--lr-schedule=cosine"}),
            "--lr-schedule=cosine: must be constant, or constant,linear, with --optimizer=ftrl");
  EXPECT_THAT(refusal({"--optimizer=ftrl", "--lr-schedule=warmup:2"}), StartsWith("--lr-schedule=warmup:2: must be"));
  EXPECT_THAT(refusal({"--mode=ps", "--consistency=async", "--optimizer=ftrl", "--staleness-lr=divide"}),
              StartsWith("--staleness-lr=divide: must be keep"));
}

TEST(SparseExchangeOption, IsOfSumsAmongWorkers) {
  const Result<CommandLine> line =
      parse({"--mode=allreduce", "--model=ncf", "--dataset=ratings", "--sparse-exchange=dense"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->config.sparse_exchange, allreduce::SparseExchange::kDense);
  EXPECT_THAT(to_toml(presumed(line->config)), HasSubstr("sparse-exchange = \"dense\""));
  EXPECT_EQ(refusal({"--mode=allreduce", "--sparse-exchange=none"}),
            "--sparse-exchange=none: exchange must be auto, rows or dense");
  EXPECT_THAT(refusal({"--mode=ps", "--sparse-exchange=rows"}), HasSubstr("only with --mode=allreduce"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--sparse-exchange=rows"}), HasSubstr("only with"));
}

TEST(ExchangeOption, IsOfHybridAlone) {
  const Result<CommandLine> line =
      parse({"--mode=hybrid", "--model=ncf", "--dataset=ratings", "--exchange=auto", "--sparse-exchange=rows"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->config.exchange, TensorExchange::kAuto);
  EXPECT_THAT(to_toml(presumed(line->config)), HasSubstr("exchange = \"auto\""));
  EXPECT_EQ(refusal({"--mode=hybrid", "--exchange=none"}), "--exchange=none: exchange must be by-kind or auto");
  EXPECT_THAT(refusal({"--mode=allreduce", "--exchange=auto"}), HasSubstr("only with --mode=hybrid"));
}

}  // namespace
}  // namespace syncopate::experiments
