#include "worker/local_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/tables/initial_row.h"

namespace syncopate::worker {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

// A table of 1000 rows of two, of which a step touches four at most, and a tensor of three.
class LocalTables : public testing::Test {
 protected:
  LocalTables() {
    layout_.add_table("embedding", 1000, 2, {.rows_a_step = 4, .limit = 0.5f});
    layout_.add("weight", {3});
    arenas_ = *strategy_.allocate(layout_);
    EXPECT_TRUE(strategy_.join().ok());
  }

  std::vector<float> rows_of(std::vector<RowKey> keys) {
    std::vector<float> values(2 * keys.size());
    EXPECT_TRUE(strategy_.read_rows(0, keys, values).ok());
    return values;
  }
  // One step, in which the gradient of every element that it touches is `gradient`.
  void step(std::vector<RowKey> keys, float gradient) {
    const std::vector<RowKeys> rows{keys};
    strategy_.begin_step({.step = step_++, .learning_rate = 0.5, .rows = rows});
    ASSERT_TRUE(strategy_.weights_needed(layout_.tables()[0].range).ok());
    const std::span<float> room = slice(arenas_.weights, layout_.tables()[0].room_of(keys.size()));
    EXPECT_THAT(room, ElementsAreArray(rows_of(keys)));
    std::ranges::fill(arenas_.gradients, gradient);
    strategy_.gradient_ready(0);
    ASSERT_TRUE(strategy_.finish_step().ok());
  }

  const SteadyClock clock_;
  LocalStrategy strategy_{{.kind = OptimizerKind::kMomentum, .momentum = 0.5f}, clock_, 9};
  ParamLayout layout_;
  ParamArenas arenas_;
  std::int64_t step_ = 0;
};

TEST_F(LocalTables, UpdatesTheRowsThatAStepTouchesAndNoOthers) {
  std::vector<float> expected(4);
  initial_row(9, 0, 3, 0.5f, std::span(expected).first(2));
  initial_row(9, 0, 900, 0.5f, std::span(expected).last(2));
  step({3, 900}, 1);
  for (float& value : expected) value -= 0.5f;
  EXPECT_THAT(rows_of({3, 900}), ElementsAreArray(expected));
  step({3}, 1);  // velocity: 0.5 · 1 + 1
  for (std::size_t i : {0, 1}) expected[i] -= 0.5f * 1.5f;
  EXPECT_THAT(rows_of({3, 900}), ElementsAreArray(expected));
  step({900}, 1);
  for (std::size_t i : {2, 3}) expected[i] -= 0.5f * 1.5f;
  EXPECT_THAT(rows_of({3, 900}), ElementsAreArray(expected));
  EXPECT_THAT(slice(arenas_.weights, layout_.tensors()[1].range), ElementsAre(-2.125f, -2.125f, -2.125f));
}

TEST_F(LocalTables, AStepMayTouchNoRow) {
  step({}, 1);
  EXPECT_THAT(*strategy_.touched_rows(0), ElementsAre());
}

TEST_F(LocalTables, CountsRowsThatStepsHaveTouchedNotThoseThatWereLookedAt) {
  step({900, 901}, 1);
  step({3}, 1);
  rows_of({5, 6});
  EXPECT_THAT(*strategy_.touched_rows(0), ElementsAre(3u, 900u, 901u));
}

// After the same further steps, one that was saved and restored has the same bits as one that went on.
TEST(LocalStrategy, GoesOnFromWhatItHasSaved) {
  ParamLayout layout;
  layout.add_table("embedding", 1000, 2, {.rows_a_step = 4, .limit = 0.5f});
  layout.add("weight", {37});
  const OptimizerConfig adam{.kind = OptimizerKind::kAdam};
  const SteadyClock clock;
  const auto train = [&](SyncStrategy& strategy, const ParamArenas& arenas, std::int64_t begin, std::int64_t end) {
    for (std::int64_t step = begin; step < end; ++step) {
      const std::vector<RowKey> keys{1, static_cast<RowKey>(10 + step)};
      const std::vector<RowKeys> rows{keys};
      strategy.begin_step({.step = step, .learning_rate = 0.1, .rows = rows});
      for (std::size_t i = 0; i < arenas.gradients.size(); ++i) {
        arenas.gradients[i] = std::sin(static_cast<float>(i + 7 * static_cast<std::size_t>(step)));
      }
      ASSERT_TRUE(strategy.finish_step().ok());
    }
  };
  LocalStrategy unbroken(adam, clock), broken(adam, clock), resumed(adam, clock);
  const ParamArenas expected = *unbroken.allocate(layout), before = *broken.allocate(layout);
  const ParamArenas after = *resumed.allocate(layout);
  train(unbroken, expected, 0, 8);
  train(broken, before, 0, 5);
  TrainingState state;
  ASSERT_TRUE(broken.save(state).ok());
  ASSERT_TRUE(resumed.restore(state).ok());
  ASSERT_TRUE(resumed.join().ok());
  EXPECT_EQ(resumed.first_step(), 5);
  train(resumed, after, 5, 8);
  EXPECT_THAT(slice(after.weights, layout.dense()), ElementsAreArray(slice(expected.weights, layout.dense())));
  const std::vector<RowKey> keys = *unbroken.touched_rows(0);
  EXPECT_EQ(*resumed.touched_rows(0), keys);
  std::vector<float> rows(2 * keys.size()), resumed_rows(rows.size());
  ASSERT_TRUE(unbroken.read_rows(0, keys, rows).ok());
  ASSERT_TRUE(resumed.read_rows(0, keys, resumed_rows).ok());
  EXPECT_EQ(resumed_rows, rows);
}

}  // namespace
}  // namespace syncopate::worker
