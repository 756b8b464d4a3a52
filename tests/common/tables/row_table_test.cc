#include "common/tables/row_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "common/random.h"
#include "common/tables/initial_row.h"
#include "tests/support/slowness.h"

namespace syncopate {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr std::size_t kWidth = 5;  // ends inside a vector register

const OptimizerConfig kAllRules[] = {
    {.kind = OptimizerKind::kSgd, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kMomentum, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kMomentum, .nesterov = true},
    {.kind = OptimizerKind::kAdam, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kAdamW, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kAdagrad, .weight_decay = 0.01f, .initial_accumulator = 0.1f},
    {.kind = OptimizerKind::kFtrl, .l1 = 0.01f, .l2 = 0.1f},
    {.kind = OptimizerKind::kMomentum, .dampening = 0.3f, .maximize = true},
    {.kind = OptimizerKind::kAdam, .amsgrad = true, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kAdagrad, .lr_decay = 0.1f},
    {.kind = OptimizerKind::kRmsprop, .momentum = 0, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kRmsprop, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kRmsprop, .momentum = 0, .centered = true},
    {.kind = OptimizerKind::kRmsprop, .centered = true, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kAdadelta, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kAdamax, .weight_decay = 0.01f},
    {.kind = OptimizerKind::kRadam, .weight_decay = 0.01f},
};

RowTableOptions options_with(const OptimizerConfig& rule) {
  return {.table = 2, .width = kWidth, .limit = 0.5f, .seed = 7, .optimizer = rule};
}

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.normal());
  return values;
}

std::vector<float> rows_of(RowTable& table, std::vector<RowKey> keys) {
  std::vector<float> values(keys.size() * kWidth);
  EXPECT_TRUE(table.read(keys, values).ok());
  return values;
}

TEST(RowTable, MakesARowWhenItIsFirstTouched) {
  RowTable table(options_with({}));
  EXPECT_EQ(table.created(), 0u);
  const std::vector<float> rows = rows_of(table, {4'000'000'000u, 3});
  std::vector<float> expected(2 * kWidth);
  initial_row(7, 2, 4'000'000'000u, 0.5f, std::span(expected).first(kWidth));
  initial_row(7, 2, 3, 0.5f, std::span(expected).last(kWidth));
  EXPECT_THAT(rows, ElementsAreArray(expected));
  EXPECT_THAT(table.keys(), ElementsAre(3u, 4'000'000'000u));
  EXPECT_TRUE(table.update(std::vector<RowKey>{9}, std::vector<float>(kWidth), {.learning_rate = 0.1f}).ok());
  EXPECT_THAT(table.keys(), ElementsAre(3u, 9u, 4'000'000'000u));
}

TEST(RowTable, PeeksAtRowsWithoutMakingThem) {
  RowTable table(options_with({}));
  const std::vector<RowKey> made{5}, both{5, 6};
  ASSERT_TRUE(table.update(made, random_values(kWidth, 1), {.learning_rate = 0.1f}).ok());
  std::vector<float> peeked(2 * kWidth);
  table.peek(both, peeked);
  EXPECT_EQ(table.created(), 1u);
  EXPECT_THAT(peeked, ElementsAreArray(rows_of(table, both)));
}

TEST(RowTable, AnUpdateOfEveryRowGivesTheBitsOfTheDenseUpdate) {
  constexpr std::size_t kRows = 300;
  std::vector<RowKey> keys(kRows);
  for (std::size_t i = 0; i < kRows; ++i) keys[i] = static_cast<RowKey>(3 * i);
  for (const OptimizerConfig& rule : kAllRules) {
    RowTable table(options_with(rule));
    std::vector<float> dense = rows_of(table, keys);
    OptimizerState state(rule, dense.size());
    for (std::int64_t number = 1; number <= 5; ++number) {
      const std::vector<float> gradient = random_values(dense.size(), static_cast<std::uint64_t>(number));
      const UpdateStep step{.learning_rate = 0.01f, .gradient_scale = 0.3f, .number = number};
      ASSERT_TRUE(table.update(keys, gradient, step).ok());
      Optimizer(rule).apply(dense, gradient, state, 0, step);
      ASSERT_THAT(rows_of(table, keys), ElementsAreArray(dense));
    }
  }
}

TEST(RowTable, ARowThatIsNotTouchedKeepsItsWeightsAndItsMemory) {
  for (const OptimizerConfig& rule : kAllRules) {
    RowTable table(options_with(rule)), undisturbed(options_with(rule));
    const std::vector<RowKey> key{17}, others{16, 18};
    const std::vector<float> gradient = random_values(kWidth, 1), of_others = random_values(2 * kWidth, 2);
    for (RowTable* each : {&table, &undisturbed}) {
      ASSERT_TRUE(each->update(key, gradient, {.learning_rate = 0.1f, .number = 1}).ok());
    }
    const std::vector<float> before = rows_of(table, key);
    ASSERT_TRUE(table.update(others, of_others, {.learning_rate = 0.1f, .number = 2}).ok());
    EXPECT_EQ(rows_of(table, key), before);
    for (RowTable* each : {&table, &undisturbed}) {
      ASSERT_TRUE(each->update(key, gradient, {.learning_rate = 0.1f, .number = 3}).ok());
    }
    EXPECT_EQ(rows_of(table, key), rows_of(undisturbed, key));
  }
}

TEST(RowTable, FindsRowsAgainAmongManyWhateverTheOrder) {
  RowTable table(options_with({.kind = OptimizerKind::kAdam}));
  Random random(1);
  std::vector<RowKey> keys(50'000);
  for (RowKey& key : keys) key = static_cast<RowKey>(random.next());
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::vector<float> ones(keys.size() * kWidth, 1.0f);
  const std::vector<float> before = rows_of(table, keys);
  std::vector<RowKey> backwards(keys.rbegin(), keys.rend());
  const std::vector<float> again = rows_of(table, backwards);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t back = keys.size() - 1 - i;
    ASSERT_TRUE(
        std::equal(before.begin() + i * kWidth, before.begin() + (i + 1) * kWidth, again.begin() + back * kWidth));
  }
  EXPECT_EQ(table.created(), keys.size());
  EXPECT_THAT(table.keys(), ElementsAreArray(keys));
}

TEST(RowTable, CountsItsMemory) {
  RowTable table(options_with({.kind = OptimizerKind::kAdam}));
  EXPECT_LT(table.bytes(), 1024u);
  std::vector<RowKey> keys(100'000);
  std::iota(keys.begin(), keys.end(), 0u);
  rows_of(table, keys);
  const double of_rows = 100'000.0 * kWidth * 3 * sizeof(float);
  EXPECT_GT(static_cast<double>(table.bytes()), of_rows);
  // Beside the rows an index of at most 8 B / (1/3) a row, and a pointer for each key of a call.
  EXPECT_LT(static_cast<double>(table.bytes()), of_rows + 100'000 * (24 + 8 + 8));
}

TEST(RowTable, SaysWhereMemoryEnds) {
  if (testing_support::kSanitized) GTEST_SKIP() << "sanitizers end a program that asks for so much";
  RowTableOptions options = options_with({});
  options.width = std::size_t{1} << 44;
  RowTable table(options);
  const Status status = table.update(std::vector<RowKey>{1}, {static_cast<float*>(nullptr), options.width}, {});
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(table.created(), 0u);
}

TEST(RowTable, ANarrowTablesRowsBeginAtZeroWhereTheLimitIsZero) {
  RowTable table({.width = 1});
  std::vector<RowKey> keys(1000);
  std::iota(keys.begin(), keys.end(), 5u);
  std::vector<float> values(1000, 1.0f);
  ASSERT_TRUE(table.read(keys, values).ok());
  EXPECT_THAT(values, Each(0.0f));
}

}  // namespace
}  // namespace syncopate
