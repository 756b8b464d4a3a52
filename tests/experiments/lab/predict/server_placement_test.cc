// Whole variables on servers: what runs do (ps/policy) and what predictions take for granted (prediction) are written
// twice, since the rooms do not include each other. Here they are held against each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "prediction/communication_cost.h"
#include "prediction/model_profile.h"
#include "ps/policy/sharding.h"

namespace syncopate::experiments {
namespace {

ParamLayout layout_of(const prediction::ModelProfile& profile) {
  ParamLayout layout;
  for (const prediction::TensorProfile& tensor : profile.tensors) layout.add(tensor.name, tensor.shape);
  return layout;
}

// The shard of each tensor.
std::vector<int> placed_by_runs(const ParamLayout& layout, int servers) {
  const ps::ShardMap map = ps::shard_map(layout, static_cast<std::size_t>(servers), {ps::ShardingPolicy::kWhole});
  std::vector<int> placed;
  for (const TensorSpec& tensor : layout.tensors()) {
    for (std::size_t shard = 0; shard < map.chunks.size(); ++shard) {
      for (const Range& chunk : map.chunks[shard]) {
        if (chunk.begin == tensor.range.begin) placed.push_back(static_cast<int>(shard));
      }
    }
  }
  return placed;
}

TEST(WholeVariables, LieWherePredictionsPutThemInEveryProfile) {
  ASSERT_FALSE(prediction::profile_names().empty());
  for (const std::string& name : prediction::profile_names()) {
    const prediction::ModelProfile profile = *prediction::built_in_profile(name);
    std::vector<double> bytes;
    for (const prediction::TensorProfile& tensor : profile.tensors) {
      bytes.push_back(static_cast<double>(sizeof(float)) * static_cast<double>(tensor.parameters));
    }
    const ParamLayout layout = layout_of(profile);
    for (const int servers : {1, 2, 3, 4, 7, 8, 16, 64}) {
      EXPECT_EQ(placed_by_runs(layout, servers), prediction::place_greedily(bytes, servers))
          << name << " on " << servers << " servers";
    }
  }
}

}  // namespace
}  // namespace syncopate::experiments
