#include "experiments/config/rules/mode_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiments/config/typed_line.h"

namespace syncopate::experiments {
namespace {

using testing::StartsWith;

TEST(ModeRules, WeightsInSharesAreNoGpusAndAreGatheredAfterTheSameStep) {
  EXPECT_THAT(refusal({"--mode=sharded", "--stage=3", "--device=cuda"}), StartsWith("--device=cuda: a GPU has all"));
  EXPECT_THAT(refusal({"--mode=sharded", "--stage=3", "--evaluate-every=2s"}),
              StartsWith("--evaluate-every=2s: all workers gather the weights"));
  EXPECT_TRUE(parse({"--mode=sharded", "--stage=2", "--evaluate-every=2s"}).ok());
  EXPECT_TRUE(parse({"--mode=sharded", "--stage=3", "--evaluate-every=20"}).ok());
}

}  // namespace
}  // namespace syncopate::experiments
