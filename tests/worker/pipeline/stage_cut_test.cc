#include "worker/pipeline/stage_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "common/random.h"
#include "tests/worker/pipeline/staged_model.h"
#include "worker/pipeline/stage_model.h"

namespace syncopate::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Chain {
  std::vector<LayerFacts> layers;
  ParamLayout layout;
};

// A layer for each cost, with one tensor of 16 numbers.
Chain chain_of(const std::vector<double>& costs) {
  Chain chain;
  for (const double cost : costs) {
    const std::size_t tensor = chain.layout.add("layer" + std::to_string(chain.layers.size()), {16});
    chain.layers.push_back({.cost = cost, .tensors_end = tensor + 1, .reads = chain.layout.tensors()[tensor].range});
  }
  return chain;
}

double greatest(const StageCut& cut, const std::vector<double>& costs) {
  double most = 0;
  for (std::size_t stage = 0; stage + 1 < cut.layers.size(); ++stage) {
    double sum = 0;
    for (std::size_t layer = cut.layers[stage]; layer < cut.layers[stage + 1]; ++layer) sum += costs[layer];
    most = std::max(most, sum);
  }
  return most;
}

// By trying every cut.
double least_greatest(const std::vector<double>& costs, std::size_t begin, int stages) {
  double sum = 0;
  if (stages == 1) {
    for (std::size_t layer = begin; layer < costs.size(); ++layer) sum += costs[layer];
    return sum;
  }
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t end = begin + 1; end + static_cast<std::size_t>(stages) - 1 <= costs.size(); ++end) {
    sum += costs[end - 1];
    least = std::min(least, std::max(sum, least_greatest(costs, end, stages - 1)));
  }
  return least;
}

TEST(StageCut, MakesTheGreatestCostAsSmallAsItCanBe) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> costs(1 + random.below(9));
    for (double& cost : costs) cost = static_cast<double>(random.below(6));
    const Chain chain = chain_of(costs);
    for (int stages = 1; stages <= static_cast<int>(costs.size()); ++stages) {
      const Result<StageCut> cut = cut_into_stages(chain.layers, chain.layout, stages);
      ASSERT_TRUE(cut.ok()) << cut.status().message();
      ASSERT_EQ(cut->stages, stages);
      EXPECT_TRUE(std::ranges::is_sorted(cut->layers, std::less_equal<>())) << "a stage has a layer";
      EXPECT_EQ(cut->layers.front(), 0u);
      EXPECT_EQ(cut->layers.back(), costs.size());
      EXPECT_EQ(greatest(*cut, costs), least_greatest(costs, 0, stages));
    }
  }
}

TEST(StageCut, CoversTheArena) {
  const Chain chain = chain_of({1, 1, 1, 1});
  const StageCut cut = *cut_into_stages(chain.layers, chain.layout, 3);
  std::size_t end = 0;
  for (int stage = 0; stage < 3; ++stage) {
    ASSERT_EQ(cut.own(stage, chain.layout).size(), 1u);
    EXPECT_EQ(cut.own(stage, chain.layout)[0].begin, end);
    end = cut.own(stage, chain.layout)[0].end;
  }
  EXPECT_EQ(end, chain.layout.size());
}

TEST(StageCut, GivesStagesTheirChunksByTurns) {
  const Chain chain = chain_of({1, 1, 1, 1, 1, 1});
  const StageCut cut = *cut_into_stages(chain.layers, chain.layout, 2, 3);
  EXPECT_THAT(cut.layers, ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(cut.chunks(), 3);
  EXPECT_THAT(cut.own(0, chain.layout), ElementsAre(Range{0, 16}, Range{32, 48}, Range{64, 80}));
  EXPECT_THAT(cut.own(1, chain.layout), ElementsAre(Range{16, 32}, Range{48, 64}, Range{80, 96}));
  const Result<StageCut> more = cut_into_stages(chain.layers, chain.layout, 2, 4);
  EXPECT_THAT(more.status().message(), HasSubstr("has 6 layers that a chunk can begin with, and cannot be cut into 8"));
}

// Its gradient would be added up in two passes of one worker.
TEST(StageCut, RefusesATensorThatChunksOfOneStageShare) {
  Chain chain = chain_of({1, 1, 1, 1});
  chain.layers[2].reads = {0, 48};
  EXPECT_EQ(cut_into_stages(chain.layers, chain.layout, 2, 2).status().code(), Code::kInvalidArgument);
  chain.layers[2].reads = {16, 48};
  const StageCut cut = *cut_into_stages(chain.layers, chain.layout, 2, 2);
  ASSERT_EQ(cut.shared.size(), 1u);
  EXPECT_EQ(std::tuple(cut.shared[0].owner, cut.shared[0].owner_chunk), std::tuple(1, 0));
  EXPECT_EQ(std::tuple(cut.shared[0].borrower, cut.shared[0].borrower_chunk), std::tuple(0, 1));
}

TEST(StageCut, BeginsNoStageWithALayerThatHasNoTensorsOrWorksInPlace) {
  Chain chain = chain_of({1, 100, 1, 1});
  chain.layers[1].in_place = true;                            // a bias
  chain.layers[3].tensors_end = chain.layers[2].tensors_end;  // a pool
  EXPECT_THAT(cut_into_stages(chain.layers, chain.layout, 2)->layers, ElementsAre(0, 2, 4));
  const Result<StageCut> cut = cut_into_stages(chain.layers, chain.layout, 3);
  EXPECT_EQ(cut.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(cut.status().message(), HasSubstr("has 2 layers that a stage can begin with"));
}

TEST(StageCut, CountsWhatALayerThatBeginsNoStageCosts) {
  Chain chain = chain_of({100, 1, 60, 60});
  chain.layers[1].in_place = true;
  EXPECT_THAT(cut_into_stages(chain.layers, chain.layout, 2)->layers, ElementsAre(0, 2, 4));
}

TEST(StageCut, FindsWhatALaterStageReads) {
  const auto shared_of = [](int stages) {
    const ChainFacts facts = *chain_facts("gpt:2-2-8", text_form());
    return cut_into_stages(facts.layers, facts.layout, stages)->shared;
  };
  ASSERT_EQ(shared_of(3).size(), 1u);
  EXPECT_EQ(shared_of(3)[0].tensor, 0u);
  EXPECT_EQ(shared_of(3)[0].owner, 0);
  EXPECT_EQ(shared_of(3)[0].borrower, 2);
  EXPECT_TRUE(shared_of(1).empty());
  const ChainFacts facts = *chain_facts("mlp:12-8-8-5", image_form());
  EXPECT_TRUE(cut_into_stages(facts.layers, facts.layout, 3)->shared.empty());
}

}  // namespace
}  // namespace syncopate::worker
