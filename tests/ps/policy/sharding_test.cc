#include "ps/policy/sharding.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "common/random.h"

namespace syncopate::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::size_t kUsualChunk = 262144;

ParamLayout layout_of(const std::vector<std::int64_t>& sizes) {
  ParamLayout layout;
  for (std::size_t i = 0; i < sizes.size(); ++i) layout.add(fmt::format("t{}", i), {sizes[i]});
  return layout;
}

// Weights and biases (Simonyan and Zisserman 2015, table 1, D), whose fc6 has 74 % of all parameters.
ParamLayout vgg16() {
  return layout_of({1728,    64,     36864,   64,      73728,     128,     147456,   128,     294912,  256,     589824,
                    256,     589824, 256,     1179648, 512,       2359296, 512,      2359296, 512,     2359296, 512,
                    2359296, 512,    2359296, 512,     102760448, 4096,    16777216, 4096,    4096000, 1000});
}
constexpr std::size_t kFc6 = 26;  // its index

// Tensors of all sizes, from one element to some hundred thousand; many small ones, as models have. And tables, whose
// room is nobody's chunk.
ParamLayout drawn_layout(Random& random) {
  ParamLayout layout;
  const std::size_t tables = random.below(3), tensors = random.below(30);
  for (std::size_t i = 0; i < tables; ++i) layout.add_table(fmt::format("table{}", i), 100, 7, {.rows_a_step = 9});
  for (std::size_t i = 0; i < tensors; ++i) {
    layout.add(fmt::format("t{}", i),
               {1 + static_cast<std::int64_t>(random.below(std::uint64_t{1} << random.below(19)))});
  }
  return layout;
}

std::vector<Range> all_chunks(const ShardMap& map) {
  std::vector<Range> all;
  for (const std::vector<Range>& shard : map.chunks) all.insert(all.end(), shard.begin(), shard.end());
  std::ranges::sort(all, {}, &Range::begin);
  return all;
}

// What ShardMap promises of every policy.
void expect_sound(const ParamLayout& layout, const ShardMap& map, std::size_t chunk_bytes) {
  std::size_t covered = layout.dense().begin;
  for (const Range& chunk : all_chunks(map)) {
    ASSERT_EQ(chunk.begin, covered) << "a gap or an overlap";
    EXPECT_GT(chunk.size(), 0u);
    EXPECT_EQ(chunk.begin % kAlignment, 0u);
    EXPECT_LE(chunk.size() * sizeof(float), std::max(chunk_bytes, kAlignment * sizeof(float)));
    covered = chunk.end;
  }
  EXPECT_EQ(covered, layout.size());
  for (const std::vector<Range>& shard : map.chunks) EXPECT_TRUE(std::ranges::is_sorted(shard, {}, &Range::begin));
}

std::size_t tensor_at(const ParamLayout& layout, std::size_t element) {
  std::size_t tensor = 0;
  while (tensor + 1 < layout.tensors().size() && layout.tensors()[tensor + 1].range.begin <= element) ++tensor;
  return tensor;
}

class EveryPolicy : public testing::TestWithParam<ShardingPolicy> {};

INSTANTIATE_TEST_SUITE_P(Of, EveryPolicy, testing::ValuesIn(kShardingPolicies), [](const auto& policy) {
  std::string name = name_of(policy.param);
  std::erase(name, '-');
  return name;
});

TEST_P(EveryPolicy, CoversTheArenaWithoutOverlapInAlignedChunksWithinTheLimit) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    const ParamLayout layout = drawn_layout(random);
    const std::size_t shards = 1 + random.below(9);
    const std::size_t chunk_bytes = 1 + random.below(std::uint64_t{1} << (6 + random.below(14)));
    SCOPED_TRACE(
        fmt::format("round {}: {} floats, {} shards, chunks of {}", round, layout.size(), shards, chunk_bytes));
    const ShardMap map = shard_map(layout, shards, {GetParam(), chunk_bytes});
    ASSERT_THAT(map.chunks, SizeIs(shards));
    expect_sound(layout, map, chunk_bytes);
  }
}

TEST_P(EveryPolicy, GivesTheSameMapForTheSameLayout) {
  for (std::size_t shards : {1u, 3u, 8u}) {
    const Sharding sharding{GetParam(), kUsualChunk};
    EXPECT_EQ(shard_map(vgg16(), shards, sharding).chunks, shard_map(vgg16(), shards, sharding).chunks);
  }
}

TEST_P(EveryPolicy, KeepsAllOnAShardThatIsAlone) {
  const ParamLayout layout = vgg16();
  const ShardLoads loads = loads_of(shard_map(layout, 1, {GetParam(), kUsualChunk}));
  EXPECT_THAT(loads.bytes, ElementsAre(layout.size() * sizeof(float)));
  EXPECT_EQ(loads.skew, 1);
}

TEST_P(EveryPolicy, LeavesShardsEmptyWhereThereIsTooLittle) {
  const ShardMap map = shard_map(layout_of({3}), 4, {GetParam(), kUsualChunk});
  EXPECT_THAT(all_chunks(map), ElementsAre(Range{0, 16}));
  EXPECT_EQ(loads_of(map).skew, 4);
  EXPECT_THAT(all_chunks(shard_map(ParamLayout(), 4, {GetParam(), kUsualChunk})), IsEmpty());
}

TEST_P(EveryPolicy, IsFoundAgainByItsName) {
  const Result<ShardingPolicy> parsed = parse_sharding_policy(name_of(GetParam()));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, GetParam());
}

TEST(ShardingPolicyName, ThatNobodyKnowsIsRefusedWithThoseThatWouldDo) {
  for (const char* text : {"", "Balanced", "round-robin", "hash "}) {
    EXPECT_THAT(parse_sharding_policy(text).status().message(),
                HasSubstr("is not balanced, tensor, hash, least-loaded or whole"));
  }
}

// A map as a text, so that maps can be counted.
std::string text_of(const ShardMap& map) {
  std::string text;
  for (const std::vector<Range>& shard : map.chunks) {
    for (const Range& chunk : shard) text += fmt::format("{}-{} ", chunk.begin, chunk.end);
    text += "| ";
  }
  return text;
}

TEST(ShardMapHash, DiffersExactlyWhereMapsDiffer) {
  Random random(2);
  std::map<std::string, std::uint64_t> hashes;
  std::set<std::uint64_t> different;
  for (int round = 0; round < 30; ++round) {
    const ParamLayout layout = drawn_layout(random);
    for (const ShardingPolicy policy : kShardingPolicies) {
      for (std::size_t shards = 1; shards <= 4; ++shards) {
        for (std::size_t chunk_bytes : {4096u, 65536u}) {
          const ShardMap map = shard_map(layout, shards, {policy, chunk_bytes});
          const auto [entry, is_new] = hashes.emplace(text_of(map), map.hash());
          EXPECT_EQ(entry->second, map.hash());
          different.insert(map.hash());
        }
      }
    }
  }
  EXPECT_GT(hashes.size(), 500u);
  EXPECT_EQ(different.size(), hashes.size());
}

TEST(Balanced, GivesEveryShardAsMuchAsTheOthers) {
  const ShardLoads loads = loads_of(shard_map(vgg16(), 7, {ShardingPolicy::kBalanced, kUsualChunk}));
  EXPECT_LT(loads.skew, 1.000001);
  EXPECT_EQ(std::accumulate(loads.bytes.begin(), loads.bytes.end(), std::size_t{0}), vgg16().size() * sizeof(float));
}

// Backward comes from the arena's end: no shard may wait for its beginning.
TEST(Balanced, DealsChunksToTheShardsInTurn) {
  const ShardMap map = shard_map(vgg16(), 7, {ShardingPolicy::kBalanced, kUsualChunk});
  const std::vector<Range> all = all_chunks(map);
  EXPECT_EQ(all.size() % 7, 0u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_LT(i / 7, map.chunks[i % 7].size());
    EXPECT_EQ(map.chunks[i % 7][i / 7].begin, all[i].begin);
  }
}

TEST(TensorPolicy, GivesWholeTensorsInTurns) {
  const ParamLayout layout = vgg16();
  const ShardMap map = shard_map(layout, 3, {ShardingPolicy::kTensor, kUsualChunk});
  for (std::size_t shard = 0; shard < 3; ++shard) {
    for (const Range& chunk : map.chunks[shard]) {
      const std::size_t tensor = tensor_at(layout, chunk.begin);
      EXPECT_EQ(tensor % 3, shard);
      EXPECT_EQ(tensor_at(layout, chunk.end - 1), tensor) << "a chunk of two tensors";
    }
  }
}

// What made VGG-16 collapse under distributed TensorFlow: the server of fc6 carries three quarters of all traffic,
// whatever the number of servers.
TEST(TensorPolicy, MakesTheServerOfVgg16sFc6Hot) {
  const ParamLayout layout = vgg16();
  for (std::size_t shards : {2u, 4u, 8u}) {
    const ShardLoads loads = loads_of(shard_map(layout, shards, {ShardingPolicy::kTensor, kUsualChunk}));
    const std::size_t hot = kFc6 % shards;
    EXPECT_EQ(std::ranges::max(loads.bytes), loads.bytes[hot]);
    EXPECT_GE(loads.bytes[hot], std::size_t{411041792});
    EXPECT_GT(loads.skew, 0.74 * static_cast<double>(shards));
  }
}

TEST(HashPolicy, SpreadsALargeTensorOverAllShards) {
  const ParamLayout layout = vgg16();
  const ShardLoads loads = loads_of(shard_map(layout, 4, {ShardingPolicy::kHash, kUsualChunk}));
  EXPECT_LT(loads.skew, 1.2);
  // Nobody is even by hash alone.
  EXPECT_GT(loads.skew, loads_of(shard_map(layout, 4, {ShardingPolicy::kLeastLoaded, kUsualChunk})).skew);
}

TEST(HashPolicy, DoesNotMoveATensorsChunksWhenAnotherTensorGrows) {
  const ShardMap before = shard_map(layout_of({1000, 1000}), 5, {ShardingPolicy::kHash, 1024});
  const ShardMap after = shard_map(layout_of({1000, 3000}), 5, {ShardingPolicy::kHash, 1024});
  for (std::size_t shard = 0; shard < 5; ++shard) {
    for (const Range& chunk : before.chunks[shard]) {
      if (chunk.begin >= 1008) continue;
      EXPECT_THAT(after.chunks[shard], testing::Contains(chunk));
    }
  }
}

// The least that the largest of `loads` can come to, by trying all ways to add `sizes` from `next` on.
std::size_t least_largest(const std::vector<std::size_t>& sizes, std::vector<std::size_t>& loads,
                          std::size_t next = 0) {
  if (next == sizes.size()) return std::ranges::max(loads);
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (std::size_t& load : loads) {
    load += sizes[next];
    least = std::min(least, least_largest(sizes, loads, next + 1));
    load -= sizes[next];
  }
  return least;
}

TEST(LeastLoaded, StaysWithinGrahamsBoundOfTheBestThatIsPossible) {
  Random random(3);
  bool is_best = true;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> tensors(1 + random.below(8));
    for (std::int64_t& size : tensors) size = 16 * static_cast<std::int64_t>(1 + random.below(20));
    const std::size_t shards = 2 + random.below(2);
    const ShardMap map = shard_map(layout_of(tensors), shards, {ShardingPolicy::kLeastLoaded, kUsualChunk});
    std::vector<std::size_t> sizes, loads(shards);
    for (const std::int64_t size : tensors) sizes.push_back(static_cast<std::size_t>(size) * sizeof(float));
    const std::size_t best = least_largest(sizes, loads);
    const std::size_t largest = std::ranges::max(loads_of(map).bytes);
    EXPECT_LE(static_cast<double>(largest),
              (4.0 / 3 - 1 / (3.0 * static_cast<double>(shards))) * static_cast<double>(best) + 1e-9);
    is_best = is_best && largest == best;
  }
  EXPECT_FALSE(is_best) << "no case was hard enough to show the bound";
}

TEST(LeastLoaded, PutsTheLargestFirst) {
  // 5 5 4 4 3 3 3 on three shards, Graham's worst case: 11 where 9 is possible.
  const ParamLayout layout = layout_of({48, 80, 64, 48, 64, 80, 48});
  const ShardLoads loads = loads_of(shard_map(layout, 3, {ShardingPolicy::kLeastLoaded, kUsualChunk}));
  EXPECT_EQ(std::ranges::max(loads.bytes), 11 * kAlignment * sizeof(float));
}

TEST(LeastLoaded, IsEvenOnVgg16) {
  for (std::size_t shards : {2u, 5u, 16u}) {
    EXPECT_LT(loads_of(shard_map(vgg16(), shards, {ShardingPolicy::kLeastLoaded, kUsualChunk})).skew, 1.01);
  }
}

TEST(Whole, GivesEachTensorToTheShardThatHasTheFewestBytesTheFirstOfEquals) {
  // By size: 40, 20 and 30 to a shard each; 5 and 10 to the second, which then has 35; 1 and 2 to the third.
  const ParamLayout layout = layout_of({40, 20, 30, 5, 10, 1, 2});
  const ShardMap map = shard_map(layout, 3, {ShardingPolicy::kWhole, kUsualChunk});
  std::vector<std::vector<std::size_t>> tensors(3);
  for (std::size_t shard = 0; shard < 3; ++shard) {
    for (const Range& chunk : map.chunks[shard]) tensors[shard].push_back(tensor_at(layout, chunk.begin));
  }
  EXPECT_THAT(tensors, ElementsAre(ElementsAre(0), ElementsAre(1, 3, 4), ElementsAre(2, 5, 6)));
}

TEST(Whole, KeepsAllChunksOfATensorOnOneShard) {
  const ParamLayout layout = vgg16();
  for (std::size_t shards : {2u, 3u, 8u}) {
    const ShardMap map = shard_map(layout, shards, {ShardingPolicy::kWhole, kUsualChunk});
    std::map<std::size_t, std::size_t> shard_of;  // by tensor
    for (std::size_t shard = 0; shard < shards; ++shard) {
      for (const Range& chunk : map.chunks[shard]) {
        const std::size_t tensor = tensor_at(layout, chunk.begin);
        EXPECT_EQ(shard_of.emplace(tensor, shard).first->second, shard) << "tensor " << tensor << " is split";
        EXPECT_EQ(tensor_at(layout, chunk.end - 1), tensor) << "a chunk of two tensors";
      }
    }
    EXPECT_THAT(shard_of, SizeIs(layout.tensors().size()));
  }
}

// Balancing does not help a tensor that has three quarters of the model: its server carries at least those.
TEST(Whole, LeavesTheServerOfVgg16sFc6Hot) {
  const ParamLayout layout = vgg16();
  for (std::size_t shards : {4u, 8u, 16u}) {
    const ShardLoads loads = loads_of(shard_map(layout, shards, {ShardingPolicy::kWhole, kUsualChunk}));
    EXPECT_GE(std::ranges::max(loads.bytes), std::size_t{411041792});
    EXPECT_GT(loads.skew, 0.74 * static_cast<double>(shards));
    EXPECT_LE(loads.skew, loads_of(shard_map(layout, shards, {ShardingPolicy::kTensor, kUsualChunk})).skew);
  }
}

// Parts of 4 servers of which each but the last has half as much as it; of 7 eighths and one eighth; and drawn ones.
std::vector<std::vector<double>> some_parts() {
  std::vector<std::vector<double>> all{{0.2, 0.2, 0.2, 0.4}, {7, 1}, {1}};
  Random random(3);
  for (int i = 0; i < 20; ++i) {
    std::vector<double> parts(1 + random.below(9));
    for (double& part : parts) part = 1 + static_cast<double>(random.below(30));
    all.push_back(parts);
  }
  return all;
}

TEST_P(EveryPolicy, ThatTakesPartsKeepsToThem) {
  if (!takes_parts(GetParam())) GTEST_SKIP() << "it takes none";
  Random random(2);
  for (const std::vector<double>& parts : some_parts()) {
    const std::size_t shards = parts.size();
    const std::size_t chunk_bytes = 1 + random.below(std::uint64_t{1} << (6 + random.below(14)));
    SCOPED_TRACE(fmt::format("{} shards, chunks of {}", shards, chunk_bytes));
    const ParamLayout layout = drawn_layout(random);
    const ShardMap map = shard_map(layout, shards, {GetParam(), chunk_bytes, parts});
    ASSERT_THAT(map.chunks, SizeIs(shards));
    expect_sound(layout, map, chunk_bytes);
    if (GetParam() == ShardingPolicy::kWhole) continue;  // its largest tensor is on one server
    const ShardMap large = shard_map(vgg16(), shards, {GetParam(), kUsualChunk, parts});
    EXPECT_LT(loads_of(large, parts).skew, 1.03);
  }
}

TEST_P(EveryPolicy, TakesEqualPartsAsNone) {
  if (!takes_parts(GetParam()) || GetParam() == ShardingPolicy::kBalanced) GTEST_SKIP() << "it cuts otherwise";
  const Sharding none{GetParam(), kUsualChunk};
  for (const double part : {1.0, 1.0 / 3}) {
    const Sharding equal{GetParam(), kUsualChunk, std::vector<double>(3, part)};
    EXPECT_EQ(shard_map(vgg16(), 3, equal).chunks, shard_map(vgg16(), 3, none).chunks);
  }
}

// 100 units of 16 floats in rounds of at most 4 for the largest: 10 of them, cut at 2, 4, 6 and 10 units.
TEST(BalancedSharding, DealsAChunkARoundToEachShardWhereChunksAreUnequal) {
  constexpr std::size_t kUnit = kAlignment;
  const std::vector<double> parts{0.2, 0.2, 0.2, 0.4};
  const ShardMap map =
      shard_map(layout_of({100 * kUnit}), 4, {ShardingPolicy::kBalanced, 4 * kUnit * sizeof(float), parts});
  for (std::size_t shard = 0; shard < 4; ++shard) {
    ASSERT_THAT(map.chunks[shard], SizeIs(10));
    for (std::size_t round = 0; round < 10; ++round) {
      const std::size_t begin = (10 * round + 2 * shard) * kUnit;
      EXPECT_EQ(map.chunks[shard][round], (Range{begin, begin + (shard == 3 ? 4 : 2) * kUnit}));
    }
  }
}

TEST(ShardLoads, MeasureAgainstPartsWhereTheyAreUnequal) {
  const ShardMap map{{{{0, 16}}, {{16, 64}}}};
  EXPECT_DOUBLE_EQ(loads_of(map).skew, 1.5);
  EXPECT_EQ(loads_of(map).fullest, 1u);
  const std::vector<double> parts{1, 4};
  EXPECT_DOUBLE_EQ(loads_of(map, parts).skew, 1.25);
  EXPECT_EQ(loads_of(map, parts).fullest, 0u);
}

TEST(ShardLoads, CountsBytesAndChunksAndTheSkew) {
  const ShardMap map{{{{0, 16}, {32, 64}}, {{16, 32}}, {}}};
  const ShardLoads loads = loads_of(map);
  EXPECT_THAT(loads.bytes, ElementsAre(192u, 64u, 0u));
  EXPECT_THAT(loads.chunks, ElementsAre(2u, 1u, 0u));
  EXPECT_DOUBLE_EQ(loads.skew, 192.0 / (256.0 / 3));
}

}  // namespace
}  // namespace syncopate::ps
