#include "common/tables/row_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/random.h"

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

TEST(RowSum, SumsTheRowsOfEachKeyOverTheUnion) {
  const std::vector<RowKey> a{1, 5, 9}, b{0, 5}, c{5, 9, 4'294'967'295u};
  const std::vector<float> of_a{1, 2, 3, 4, 5, 6}, of_b{10, 20, 30, 40}, of_c{100, 200, 300, 400, 500, 600};
  RowSum sum(2);
  sum.sum(std::vector<SparseRows>{{a, of_a}, {b, of_b}, {c, of_c}});
  EXPECT_THAT(sum.keys(), ElementsAre(0u, 1u, 5u, 9u, 4'294'967'295u));
  EXPECT_THAT(sum.values(), ElementsAre(10, 20, 1, 2, 3 + 30 + 100, 4 + 40 + 200, 305, 406, 500, 600));
}

TEST(RowSum, AddsInTheOrderGiven) {
  const std::vector<RowKey> key{3};
  const std::vector<float> big{1e8f}, minus{-1e8f}, one{1};
  RowSum sum(1);
  sum.sum(std::vector<SparseRows>{{key, big}, {key, minus}, {key, one}});
  EXPECT_THAT(sum.values(), ElementsAre(1));
  sum.sum(std::vector<SparseRows>{{key, one}, {key, big}, {key, minus}});
  EXPECT_THAT(sum.values(), ElementsAre(0));
}

TEST(RowSum, OfNothingIsEmptyAlsoAfterASumOfSomething) {
  const std::vector<RowKey> key{3};
  const std::vector<float> value{2};
  RowSum sum(1);
  sum.sum(std::vector<SparseRows>{{key, value}});
  sum.sum(std::vector<SparseRows>{{}, {}});
  EXPECT_THAT(sum.keys(), IsEmpty());
  EXPECT_THAT(sum.values(), IsEmpty());
  sum.sum({});
  EXPECT_THAT(sum.keys(), IsEmpty());
}

TEST(RowSum, EqualsPlainLoopsOverManyRandomRows) {
  constexpr std::size_t kWidth = 3;
  Random random(1);
  RowSum sum(kWidth);
  for (const int ranks : {1, 2, 3, 5}) {
    std::vector<std::map<RowKey, std::vector<float>>> gradients(static_cast<std::size_t>(ranks));
    std::vector<std::vector<RowKey>> keys(gradients.size());
    std::vector<std::vector<float>> values(gradients.size());
    std::map<RowKey, std::vector<float>> expected;
    for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
      while (gradients[rank].size() < 200) {
        std::vector<float>& row = gradients[rank][static_cast<RowKey>(random.below(500))];
        row.clear();
        for (std::size_t i = 0; i < kWidth; ++i) row.push_back(static_cast<float>(random.normal()));
      }
      for (const auto& [key, row] : gradients[rank]) {
        keys[rank].push_back(key);
        values[rank].insert(values[rank].end(), row.begin(), row.end());
        const auto [at, is_new] = expected.try_emplace(key, row);
        for (std::size_t i = 0; !is_new && i < kWidth; ++i) at->second[i] += row[i];
      }
    }
    std::vector<SparseRows> by_rank;
    for (std::size_t rank = 0; rank < gradients.size(); ++rank) by_rank.push_back({keys[rank], values[rank]});
    sum.sum(by_rank);
    std::vector<RowKey> expected_keys;
    std::vector<float> expected_values;
    for (const auto& [key, row] : expected) {
      expected_keys.push_back(key);
      expected_values.insert(expected_values.end(), row.begin(), row.end());
    }
    EXPECT_THAT(sum.keys(), ElementsAreArray(expected_keys));
    EXPECT_THAT(sum.values(), ElementsAreArray(expected_values));
  }
}

}  // namespace
}  // namespace syncopate
