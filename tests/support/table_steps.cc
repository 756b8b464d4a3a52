#include "tests/support/table_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/os/aligned_buffer.h"
#include "common/random.h"
#include "common/tables/row_table.h"

namespace syncopate::testing_support {
namespace {

using testing::ElementsAreArray;

constexpr std::size_t kWidths[] = {5, 1};
constexpr std::size_t kMostRows = 12;  // of a step
constexpr double kRate = 0.01;
constexpr float kFirstWeight = 3;

float drawn_gradient(Random& random) {
  const float value = static_cast<float>(random.below(1000)) - 500.0f;
  return value * (random.below(2) == 0 ? 0x1p-12f : 0x1p12f);
}

// What rank `rank` touches in a step, and its gradients.
struct Touched {
  std::vector<RowKey> keys;
  std::vector<float> gradients;
};
Touched touched_by(int rank, std::int64_t step, std::size_t table, std::size_t rows) {
  Random random(static_cast<std::uint64_t>(1000 * step + 10 * rank) + table);
  std::map<RowKey, int> drawn;
  const std::uint64_t count = random.below(kMostRows + 1);
  for (std::uint64_t i = 0; i < count; ++i) drawn[static_cast<RowKey>(random.below(rows))] = 1;
  Touched touched;
  for (const auto& [key, once] : drawn) {
    touched.keys.push_back(key);
    for (std::size_t i = 0; i < kWidths[table]; ++i) touched.gradients.push_back(drawn_gradient(random));
  }
  return touched;
}

std::vector<float> dense_gradient(int rank, std::int64_t step, std::size_t size) {
  Random random(static_cast<std::uint64_t>(1000 * step + 10 * rank) + std::size(kWidths));
  std::vector<float> gradient(size);
  for (float& value : gradient) value = drawn_gradient(random);
  return gradient;
}

UpdateStep update_of(std::int64_t step, int ranks) {
  return {static_cast<float>(kRate), 1.0f / static_cast<float>(ranks), step + 1};
}

// The rows of one table after so many steps of so many ranks.
RowTable expected_rows(int ranks, std::int64_t steps, std::size_t table, std::size_t rows,
                       const OptimizerConfig& rule) {
  const std::size_t width = kWidths[table];
  const TensorSpec spec = table_layout(static_cast<std::int64_t>(rows)).tensors()[table];
  RowTable expected(
      {.table = table, .width = width, .limit = spec.table->limit, .seed = TableSteps::kSeed, .optimizer = rule});
  for (std::int64_t step = 0; step < steps; ++step) {
    std::map<RowKey, std::vector<float>> sums;
    for (int rank = 0; rank < ranks; ++rank) {
      const Touched touched = touched_by(rank, step, table, rows);
      for (std::size_t k = 0; k < touched.keys.size(); ++k) {
        std::vector<float>& sum = sums.try_emplace(touched.keys[k], width).first->second;
        for (std::size_t i = 0; i < width; ++i) sum[i] += touched.gradients[k * width + i];
      }
    }
    const UpdateStep update = update_of(step, ranks);
    for (const auto& [key, sum] : sums) EXPECT_TRUE(expected.update(std::vector{key}, sum, update).ok());
  }
  return expected;
}

}  // namespace

ParamLayout table_layout(std::int64_t rows) {
  ParamLayout layout;
  layout.add_table("users", rows, 5, {.rows_a_step = kMostRows, .limit = 0.5f});
  layout.add_table("items", rows, 1, {.rows_a_step = kMostRows, .limit = 0.25f});
  layout.add("dense", {40});
  return layout;
}

TableSteps::TableSteps(SyncStrategy& strategy, int rank, std::int64_t rows, const TrainingState* state)
    : strategy_(strategy), rank_(rank), rows_(static_cast<std::size_t>(rows)), layout_(table_layout(rows)) {
  arenas_ = *strategy_.allocate(layout_);
  if (rank_ == 0) std::ranges::fill(slice(arenas_.weights, layout_.dense()), kFirstWeight);
  if (state != nullptr) EXPECT_TRUE(strategy_.resumable()->restore(*state).ok());
  const Result<std::vector<Range>> buckets = strategy_.join();
  EXPECT_TRUE(buckets.ok()) << buckets.status().message();
  if (!buckets.ok()) return;
  dense_buckets_ = buckets->size() - 2;
  EXPECT_EQ(buckets->at(dense_buckets_ - 1).begin, layout_.dense().begin);
  EXPECT_EQ(buckets->at(dense_buckets_), layout_.tables()[1].padded());
  EXPECT_EQ(buckets->at(dense_buckets_ + 1), layout_.tables()[0].padded());
}

SyncStats TableSteps::step(std::int64_t number) {
  const Touched touched[] = {touched_by(rank_, number, 0, rows_), touched_by(rank_, number, 1, rows_)};
  const std::vector<RowKeys> rows{touched[0].keys, touched[1].keys};
  strategy_.begin_step({.step = number, .learning_rate = kRate, .rows = rows});
  for (std::size_t table : {0u, 1u}) {
    const Range room = layout_.tables()[table].room_of(rows[table].size());
    const Status there = strategy_.weights_needed(layout_.tables()[table].range);
    EXPECT_TRUE(there.ok()) << there.message();
    EXPECT_THAT(slice(arenas_.weights, room), ElementsAreArray(read(table, rows[table])));
  }
  std::ranges::copy(dense_gradient(rank_, number, layout_.dense().size()),
                    slice(arenas_.gradients, layout_.dense()).begin());
  for (std::size_t bucket = 0; bucket < dense_buckets_; ++bucket) strategy_.gradient_ready(bucket);
  for (std::size_t table : {1u, 0u}) {
    const Range room = layout_.tables()[table].room_of(rows[table].size());
    std::ranges::copy(touched[table].gradients, slice(arenas_.gradients, room).begin());
    strategy_.gradient_ready(dense_buckets_ + 1 - table);
  }
  strategy_.gradients_complete();
  const Result<SyncStats> stats = strategy_.finish_step();
  EXPECT_TRUE(stats.ok()) << stats.status().message();
  return stats.ok() ? *stats : SyncStats();
}

std::vector<float> TableSteps::read(std::size_t table, RowKeys keys) {
  std::vector<float> values(keys.size() * kWidths[table]);
  EXPECT_TRUE(strategy_.table_reader()->read_rows(table, keys, values).ok());
  return values;
}

void TableSteps::expect_rows(int ranks, std::int64_t steps, const OptimizerConfig& rule) {
  for (std::size_t table : {0u, 1u}) {
    const RowTable expected = expected_rows(ranks, steps, table, rows_, rule);
    const std::vector<RowKey> keys = expected.keys();
    std::vector<float> values(keys.size() * kWidths[table]);
    expected.peek(keys, values);
    EXPECT_THAT(*strategy_.table_reader()->touched_rows(table), ElementsAreArray(keys));
    EXPECT_THAT(read(table, keys), ElementsAreArray(values));
  }
}

void TableSteps::expect_dense(int ranks, std::int64_t steps, const OptimizerConfig& rule) const {
  const std::size_t size = layout_.dense().size();
  AlignedBuffer weights(size), sum(size);
  std::ranges::fill(weights.span(), kFirstWeight);
  OptimizerState state(rule, size);
  for (std::int64_t step = 0; step < steps; ++step) {
    std::ranges::fill(sum.span(), 0.0f);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::vector<float> gradient = dense_gradient(rank, step, size);
      for (std::size_t i = 0; i < size; ++i) sum.span()[i] += gradient[i];
    }
    Optimizer(rule, layout_, layout_.dense()).apply(weights.span(), sum.span(), state, 0, update_of(step, ranks));
  }
  EXPECT_THAT(slice(arenas_.weights, layout_.dense()), ElementsAreArray(weights.span()));
}

}  // namespace syncopate::testing_support
