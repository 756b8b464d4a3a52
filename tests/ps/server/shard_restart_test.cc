// Every schedule of small jobs in which a shard ends between any two messages and goes on from what it has saved; and
// what of a state is found again under other chunks.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <memory>

#include "ps/server/shard_cut.h"
#include "ps/server/shard_state.h"
#include "tests/ps/server/shard_harness.h"

namespace syncopate::ps {
namespace {

using testing::Each;
using testing::ElementsAre;

struct RestartJob {
  int workers;
  int clocks;  // pushes of each worker
  std::string consistency;
};

// As in shard_schedules_test: worker w's push number c is a gradient of 2^(w * clocks + c - 1), so that the weights
// tell, digit by digit, which pushes they hold, and how often. The shard ends once, when a schedule says so.
class RestartedJob {
 public:
  explicit RestartedJob(const RestartJob& job) : job_(job) { begin(); }

  // Workers, of whom the next message is taken, and behind them the end of the shard.
  std::vector<int> possible() {
    std::vector<int> actions;
    for (int rank = 0; rank < job_.workers; ++rank) {
      if (!harness_->worker(rank).waiting && !harness_->worker(rank).left) actions.push_back(rank);
    }
    if (!saved_ && !harness_->shard.done()) actions.push_back(job_.workers);
    return actions;
  }

  void take(int action) {
    if (action == job_.workers) return restart();
    const std::int64_t clock = harness_->worker(action).clock;
    if (clock == job_.clocks) return harness_->leave(action);
    harness_->push(action, static_cast<float>(std::int64_t{1} << (action * job_.clocks + clock)));
  }

  ShardHarness& harness() { return *harness_; }

 private:
  void begin() {
    harness_ =
        std::make_unique<ShardHarness>(job_.workers, job_.consistency, 2, OptimizerConfig{.kind = OptimizerKind::kSgd},
                                       StalenessOptions{}, saved_ ? &state_ : nullptr);
    harness_->join_all();
  }

  void restart() {
    harness_->shard.save(state_);
    saved_ = true;
    begin();
  }

  RestartJob job_;
  std::unique_ptr<ShardHarness> harness_;
  bool saved_ = false;
  TrainingState state_;
};

int for_every_schedule(const RestartJob& job, const std::function<void(RestartedJob&)>& at_end) {
  std::vector<std::size_t> choices, widths;
  int schedules = 0;
  do {
    RestartedJob run(job);
    widths.clear();
    for (std::vector<int> actions = run.possible(); !actions.empty(); actions = run.possible()) {
      if (choices.size() == widths.size()) choices.push_back(0);
      run.take(actions[choices[widths.size()]]);
      widths.push_back(actions.size());
      if (testing::Test::HasFailure()) return schedules;
    }
    at_end(run);
    ++schedules;
    choices.resize(widths.size());
    while (!choices.empty() && choices.back() + 1 == widths[choices.size() - 1]) choices.pop_back();
    if (!choices.empty()) ++choices.back();
  } while (!choices.empty() && !testing::Test::HasFailure());
  return schedules;
}

TEST(ShardRestart, EachPushIsAppliedOnceWhereverTheShardEnds) {
  for (const RestartJob& job : {RestartJob{2, 3, "async"}, RestartJob{3, 1, "async"}, RestartJob{2, 3, "bounded:0"},
                                RestartJob{2, 3, "bounded:1"}, RestartJob{2, 3, "sync"}, RestartJob{3, 2, "sync"},
                                RestartJob{2, 2, "softsync:1"}, RestartJob{2, 3, "local-sgd:2"}}) {
    const Consistency consistency = consistency_of(job.consistency);
    const int an_update = consistency.pushes_an_update(job.workers, job.workers);
    const auto all = static_cast<float>((std::int64_t{1} << (job.workers * job.clocks)) - 1);
    const int schedules = for_every_schedule(job, [&](RestartedJob& run) {
      EXPECT_TRUE(run.harness().shard.done()) << job.consistency;
      EXPECT_THAT(run.harness().weights(), Each(-all / static_cast<float>(an_update))) << job.consistency;
      EXPECT_EQ(run.harness().version(), job.workers * job.clocks / an_update) << job.consistency;
    });
    EXPECT_GT(schedules, 20) << job.consistency;
  }
}

TEST(ShardRestart, TheOthersFinishWithBackupWorkersAndWithSumsOfAnyLength) {
  for (const RestartJob& job :
       {RestartJob{2, 2, "sync+1"}, RestartJob{3, 1, "sync+2"}, RestartJob{3, 1, "softsync:1"}}) {
    EXPECT_GT(
        for_every_schedule(job, [&](RestartedJob& run) { EXPECT_TRUE(run.harness().shard.done()) << job.consistency; }),
        20)
        << job.consistency;
  }
}

ChunkCounts counts_at(std::int64_t version, std::vector<std::int64_t> pushes, std::vector<bool> away) {
  ChunkCounts counts{.version = version, .clocks = Clocks(static_cast<int>(pushes.size()))};
  counts.clocks.pushes = std::move(pushes);
  counts.clocks.away = std::move(away);
  return counts;
}

TEST(ShardState, AChunkThatIsCutAnewHasTheLargestOfItsPieces) {
  TrainingState state;
  for (const std::size_t begin : {0, 16, 32}) state.put(state_part::kWeights, begin, std::vector<float>(16, 1.0f));
  put_chunk_counts(0, counts_at(5, {3, 2}, {false, true}), state);
  put_chunk_counts(16, counts_at(4, {2, 4}, {false, true}), state);
  put_chunk_counts(32, counts_at(9, {9, 9}, {false, false}), state);
  const ChunkCounts same = *chunk_counts({16, 32}, 2, 1, state);
  EXPECT_EQ(same.version, 4);
  EXPECT_THAT(same.clocks.pushes, ElementsAre(2, 4));
  EXPECT_THAT(same.clocks.away, ElementsAre(false, true));
  const ChunkCounts both = *chunk_counts({8, 24}, 3, 1, state);  // and a worker that is new
  EXPECT_EQ(both.version, 5);
  EXPECT_THAT(both.clocks.pushes, ElementsAre(3, 4, 0));
  EXPECT_THAT(both.clocks.away, ElementsAre(false, true, true));
}

TEST(ShardState, WhatNoShardHasMadeCountsAPushForEachPeriod) {
  TrainingState state;
  state.step = 12;
  state.put(state_part::kWeights, 0, std::vector<float>(16, 1.0f));
  const ChunkCounts counts = *chunk_counts({0, 16}, 2, 4, state);
  EXPECT_EQ(counts.version, 3);
  EXPECT_THAT(counts.clocks.pushes, ElementsAre(3, 3));
}

TEST(ShardState, WhoWasAwayTakesUpWhereTheSlowestIsUnlessItIsFurther) {
  const Membership members(4);
  Clocks clocks(4);
  clocks.pushes = {7, 5, 1, 6};
  clocks.away = {false, false, true, true};
  EXPECT_THAT(clocks_to_go_on_with(clocks, members), ElementsAre(7, 5, 5, 6));
  clocks.away = {true, true, true, true};
  EXPECT_THAT(clocks_to_go_on_with(clocks, members), ElementsAre(7, 5, 1, 6));
}

TEST(ShardState, SumsOfPiecesAreBroughtToOneWeight) {
  TrainingState state;
  for (const std::size_t begin : {0, 16}) {
    state.put(state_part::kWeights, begin, std::vector<float>(16, 1.0f));
    ChunkCounts counts = counts_at(1, {1}, {false});
    counts.summed = begin == 0 ? 1 : 2;
    counts.summed_weight = begin == 0 ? 1.0f : 2.0f;
    put_chunk_counts(begin, counts, state);
    state.put(shard_part::kSum, begin, std::vector<float>(16, begin == 0 ? 3.0f : 4.0f));
  }
  const ChunkCounts counts = *chunk_counts({0, 32}, 1, 1, state);
  EXPECT_EQ(counts.summed, 2);
  std::vector<float> sum(32);
  ASSERT_TRUE(read_sum({0, 32}, counts.summed_weight, sum, state).ok());
  EXPECT_THAT(std::span(sum).first(16), Each(6.0f));
  EXPECT_THAT(std::span(sum).last(16), Each(4.0f));
}

// A checkpoint may be anybody's: nothing is counted on from the end of numbers.
TEST(ShardState, WhatCannotBeCountedIsRefused) {
  const auto with = [](std::size_t place, std::int64_t value) {
    TrainingState state;
    state.put(state_part::kWeights, 0, std::vector<float>(16, 1.0f));
    put_chunk_counts(0, counts_at(1, {1}, {false}), state);
    state.counts[shard_part::chunk_at(0)][place] = value;
    return chunk_counts({0, 16}, 1, 1, state).status().code();
  };
  EXPECT_EQ(with(0, 5), Code::kOk);
  EXPECT_EQ(with(0, INT64_MAX), Code::kDataLoss);
  EXPECT_EQ(with(0, -1), Code::kDataLoss);
  EXPECT_EQ(with(1, -1), Code::kDataLoss);
  EXPECT_EQ(with(1, INT64_MAX), Code::kDataLoss);
  EXPECT_EQ(with(2, 0x7fc00000), Code::kDataLoss) << "a weight that is no number";
  EXPECT_EQ(with(3, 0x7f800000), Code::kDataLoss) << "an endless rate";
  EXPECT_EQ(with(4, INT64_MAX), Code::kDataLoss);
  EXPECT_EQ(with(5, std::bit_cast<std::int64_t>(-1.0)), Code::kDataLoss);
  EXPECT_EQ(with(6, INT64_MAX), Code::kDataLoss);
  EXPECT_EQ(with(6, INT64_MIN), Code::kDataLoss);
  TrainingState state;
  put_table_counts(0, 0, 1, {.version = 1, .clocks = Clocks(1)}, state);
  EXPECT_TRUE(table_counts(0, 0, 1, 1, state).ok());
  for (const std::size_t place : {1, 2}) {
    state.counts[shard_part::table_on(0, 0)] = {1, 1, 1};
    state.counts[shard_part::table_on(0, 0)][place] = INT64_MAX;
    EXPECT_EQ(table_counts(0, 0, 1, 1, state).status().code(), Code::kDataLoss) << place;
    EXPECT_EQ(table_counts(0, 0, 2, 1, state).status().code(), Code::kDataLoss) << place;
  }
}

TEST(ShardState, TablesOfOtherShardsAreMerged) {
  TrainingState all;
  for (const std::size_t shard : {0, 1}) {
    TrainingState part;
    part.step = shard == 0 ? 4 : 3;
    part.rows[0] = {.row_floats = 1, .keys = {}, .values = {}};
    for (RowKey key = 0; key < 6; ++key) {
      if (key % 2 != shard) continue;
      part.rows[0].keys.push_back(key);
      part.rows[0].values.push_back(static_cast<float>(key));
    }
    TableCounts counts{.version = 2 + static_cast<std::int64_t>(shard), .clocks = Clocks(1)};
    counts.clocks.pushes = {static_cast<std::int64_t>(4 - shard)};
    put_table_counts(0, shard, 2, counts, part);
    merge_shard(part, all);
  }
  EXPECT_EQ(all.step, 3);
  EXPECT_THAT(all.rows[0].keys, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(all.rows[0].values, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(table_counts(0, 1, 2, 1, all)->version, 3);
  EXPECT_EQ(table_counts(0, 0, 3, 1, all)->version, 3);
  EXPECT_THAT(table_counts(0, 0, 3, 1, all)->clocks.pushes, ElementsAre(4));
}

TEST(ShardCut, OfSyncIsTakenAtItsVersionAndOfAsyncAtOnce) {
  for (const std::string consistency : {"sync", "async"}) {
    ShardHarness job(2, consistency, 2);
    job.join_all();
    ShardCut cut(2, TrainingState());
    const bool is_sync = consistency == "sync";
    EXPECT_EQ(*cut.advance(job.shard), !is_sync);
    for (int clock = 1; clock <= 2 && is_sync; ++clock) {
      job.push(0, 1);
      EXPECT_FALSE(*cut.advance(job.shard));
      job.push(1, 1);
      EXPECT_EQ(*cut.advance(job.shard), clock == 2);
    }
    const TrainingState state = cut.take();
    EXPECT_EQ(state.step, is_sync ? 2 : 0);
    EXPECT_THAT(state.values(state_part::kWeights, {0, 2}), Each(is_sync ? -2.0f : 0.0f));
    ASSERT_TRUE(!is_sync || !ShardCut(1, TrainingState()).advance(job.shard).ok());
  }
}

}  // namespace
}  // namespace syncopate::ps
