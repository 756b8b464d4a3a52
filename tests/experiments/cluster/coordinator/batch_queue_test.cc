#include "experiments/cluster/coordinator/batch_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "common/random.h"

namespace syncopate::experiments {
namespace {

using testing::Each;

TEST(BatchQueue, GivesOutInOrderAndSaysWhenThereAreNoMore) {
  BatchQueue queue(5, 1);
  EXPECT_EQ(queue.draw(0, 1), (BatchRange{0, 1}));
  EXPECT_EQ(queue.draw(0, 1), (BatchRange{1, 2}));
  EXPECT_EQ(queue.draw(0, 1), (BatchRange{2, 3}));
  EXPECT_EQ(queue.draw(0, 1), (BatchRange{3, 4}));
  EXPECT_EQ(queue.draw(0, 1), (BatchRange{4, 5}));
  EXPECT_EQ(queue.draw(0, 1), std::nullopt);
}

TEST(BatchQueue, GivesNoMoreThanIsWantedNorThanEvensOutTheEnd) {
  BatchQueue queue(1000, 4);
  EXPECT_EQ(queue.draw(0, 10)->size(), 10);
  EXPECT_EQ(queue.draw(1, 400)->size(), 990 / 8) << "of what is left, over twice the workers";
  BatchQueue nearly_done(1000, 4, 992);
  EXPECT_EQ(nearly_done.draw(0, 100)->size(), 8) << "an eighth of what is wanted would be more";
  BatchQueue few_left(1000, 4, 950);
  EXPECT_EQ(few_left.draw(0, 80)->size(), 10) << "an eighth of what is wanted";
  EXPECT_EQ(few_left.draw(0, 2)->size(), 2);
  EXPECT_EQ(few_left.draw(0, 0)->size(), 1);
}

TEST(BatchQueue, GoesOnBehindWhatHasBeenDone) {
  BatchQueue queue(10, 2, 7);
  EXPECT_EQ(queue.done(), 7);
  EXPECT_EQ(queue.draw(1, 1), (BatchRange{7, 8}));
  queue.go_back(3);
  EXPECT_EQ(queue.done(), 3);
  EXPECT_EQ(queue.draw(1, 1), (BatchRange{3, 4}));
  EXPECT_EQ(BatchQueue(10, 2, 99).draw(0, 1), std::nullopt);
}

TEST(BatchQueue, GivesWhatALostWorkerHadBeforeAllElse) {
  BatchQueue queue(100, 2);
  ASSERT_EQ(queue.draw(0, 6), (BatchRange{0, 6}));
  ASSERT_EQ(queue.draw(1, 6), (BatchRange{6, 12}));
  queue.finish(0, 0);
  queue.finish(0, 1);
  queue.hold_only(0, {});
  queue.finish(0, 3) /* which is heard of late */;
  EXPECT_EQ(queue.draw(1, 6), (BatchRange{2, 3})) << "one range of those that are left of it";
  EXPECT_EQ(queue.draw(1, 6), (BatchRange{4, 6}));
  EXPECT_EQ(queue.draw(1, 6), (BatchRange{12, 18}));
  EXPECT_EQ(queue.done(), 3);
}

TEST(BatchQueue, LeavesAWorkerThatComesBackWhatItStillHas) {
  BatchQueue queue(100, 1);
  ASSERT_EQ(queue.draw(0, 4), (BatchRange{0, 4}));
  const std::vector<std::int64_t> held = {2, 50};  // the second was never its
  queue.hold_only(0, held);
  EXPECT_EQ(queue.draw(0, 4), (BatchRange{0, 2}));
  EXPECT_EQ(queue.draw(0, 4), (BatchRange{3, 4}));
  EXPECT_EQ(queue.draw(0, 4), (BatchRange{4, 8}));
}

TEST(BatchQueue, CountsABatchOnce) {
  BatchQueue queue(10, 2);
  queue.draw(0, 1);
  queue.finish(0, 0);
  queue.finish(0, 0);
  queue.finish(1, 0);
  queue.finish(1, 7);
  EXPECT_EQ(queue.done(), 1);
}

// Workers draw, train in whatever order they come to, and are lost, drawn at random: in the end each batch has been
// trained, and none twice unless who trained it was lost before it could say so.
TEST(BatchQueue, HasEachBatchTrainedOnceWhoeverIsLost) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed, 1);
    const auto drawn = [&](std::size_t below) { return static_cast<std::int64_t>(random.below(below)); };
    const auto batches = 1 + drawn(400);
    const int workers = 1 + static_cast<int>(drawn(5));
    BatchQueue queue(batches, workers);
    std::vector<std::deque<std::int64_t>> held(static_cast<std::size_t>(workers));
    std::vector<int> trained(static_cast<std::size_t>(batches));
    std::vector<bool> out(static_cast<std::size_t>(batches));  // somebody has it, or has trained it
    while (queue.done() < batches) {
      const auto worker = static_cast<int>(drawn(static_cast<std::size_t>(workers)));
      std::deque<std::int64_t>& own = held[static_cast<std::size_t>(worker)];
      if (drawn(20) == 0) {
        for (const std::int64_t batch : own) out[static_cast<std::size_t>(batch)] = false;
        own.clear();
        queue.hold_only(worker, {});
        continue;
      }
      if (own.size() < 2) {
        const std::optional<BatchRange> range = queue.draw(worker, drawn(30));
        for (std::int64_t batch = range ? range->begin : 0; range && batch < range->end; ++batch) {
          ASSERT_FALSE(out[static_cast<std::size_t>(batch)])
              << "seed " << seed << ": batch " << batch << " is out twice";
          out[static_cast<std::size_t>(batch)] = true;
          own.push_back(batch);
        }
      }
      if (own.empty()) continue;
      ++trained[static_cast<std::size_t>(own.front())];
      queue.finish(worker, own.front());
      own.pop_front();
    }
    EXPECT_THAT(trained, Each(1)) << "seed " << seed;
    EXPECT_EQ(queue.draw(0, 1), std::nullopt);
  }
}

// Three workers need 1 ms a batch, one 23 ms, as they draw 50 ms of work each: in the end nobody has more than two of
// the slow one's batches to wait for.
TEST(BatchQueue, EndsTogetherHoweverSlowAWorkerIs) {
  constexpr std::int64_t kBatches = 3000;
  const std::vector<std::int64_t> cost = {1, 1, 1, 23};
  BatchQueue queue(kBatches, 4);
  std::vector<std::int64_t> free_at(4);
  std::vector<bool> has_left(4);
  while (std::ranges::find(has_left, false) != has_left.end()) {
    std::size_t next = 4;
    for (std::size_t worker = 0; worker < 4; ++worker) {
      if (!has_left[worker] && (next == 4 || free_at[worker] < free_at[next])) next = worker;
    }
    const std::optional<BatchRange> range = queue.draw(static_cast<int>(next), 50 / cost[next]);
    if (range) free_at[next] += range->size() * cost[next];
    has_left[next] = !range;
  }
  const auto [first, last] = std::ranges::minmax(free_at);
  EXPECT_LE(last - first, 2 * 23);
  EXPECT_LE(last, static_cast<std::int64_t>(kBatches / (3 + 1.0 / 23)) + 2 * 23);
}

}  // namespace
}  // namespace syncopate::experiments
