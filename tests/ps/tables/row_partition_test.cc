#include "ps/tables/row_partition.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "common/random.h"

namespace syncopate::ps {
namespace {

// The largest part over an even one.
double skew_of(const RowPartition& partition, std::size_t shards, std::size_t keys) {
  std::size_t largest = 0;
  for (std::size_t shard = 0; shard < shards; ++shard) {
    largest = std::max(largest, partition.places_of(shard).size());
  }
  return static_cast<double>(largest * shards) / static_cast<double>(keys);
}

TEST(RowPartition, PutsEveryRowOnOneShardAndKeepsTheOrderOfKeys) {
  const std::vector<RowKey> keys{0, 3, 4, 77, 1000, 65536, 4294967295};
  for (std::size_t shards = 1; shards <= 5; ++shards) {
    RowPartition partition(1, shards);
    for (int repeat = 0; repeat < 2; ++repeat) {
      partition.split(keys);
      std::vector<std::uint32_t> all;
      for (std::size_t shard = 0; shard < shards; ++shard) {
        const std::span<const std::uint32_t> places = partition.places_of(shard);
        EXPECT_TRUE(std::ranges::is_sorted(places));
        for (const std::uint32_t place : places) EXPECT_EQ(shard_of_row(1, keys[place], shards), shard);
        all.insert(all.end(), places.begin(), places.end());
      }
      std::ranges::sort(all);
      EXPECT_THAT(all, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6));
    }
    partition.split({});
    for (std::size_t shard = 0; shard < shards; ++shard) EXPECT_TRUE(partition.places_of(shard).empty());
  }
}

// A hundred batches of 4096 look-ups in a million rows, of which the r-th is looked up about 1 / r as often as the
// first: as keys stand in order of popularity, or in any other.
TEST(RowPartition, MakesNoShardHotWhenFewRowsAreTouchedMostOfTheTime) {
  constexpr double kRows = 1e6;
  for (const RowKey stride : {1u, 8u, 1024u}) {
    for (const std::size_t shards : {2, 3, 8}) {
      RowPartition partition(0, shards);
      Random random(stride);
      double mean_skew = 0;
      std::size_t mean_keys = 0;
      for (int batch = 0; batch < 100; ++batch) {
        std::set<RowKey> touched;
        for (int i = 0; i < 4096; ++i) {
          touched.insert(static_cast<RowKey>(std::exp(random.uniform() * std::log(kRows))) * stride);
        }
        const std::vector<RowKey> keys(touched.begin(), touched.end());
        partition.split(keys);
        mean_skew += skew_of(partition, shards, keys.size()) / 100;
        mean_keys += keys.size() / 100;
      }
      // Twice the spread of a fair draw.
      const double spread = std::sqrt(static_cast<double>(shards) / static_cast<double>(mean_keys));
      EXPECT_LT(mean_skew, 1 + 2 * spread) << stride << " " << shards;
    }
  }
}

TEST(RowPartition, SpreadsRowsThatStandSideBySideAndRowsThatAreFarApart) {
  constexpr std::size_t kKeys = 100000;
  for (const RowKey stride : {1u, 3u, 64u, 4096u}) {
    for (const std::size_t shards : {2, 3, 5, 16}) {
      std::vector<RowKey> keys(kKeys);
      for (std::size_t i = 0; i < kKeys; ++i) keys[i] = static_cast<RowKey>(i) * stride;
      RowPartition partition(0, shards);
      partition.split(keys);
      EXPECT_LT(skew_of(partition, shards, kKeys), 1.05) << stride << " " << shards;
    }
  }
}

}  // namespace
}  // namespace syncopate::ps
