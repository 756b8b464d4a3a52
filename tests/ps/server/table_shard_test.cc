#include "ps/server/table_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "common/random.h"
#include "common/tables/initial_row.h"
#include "tests/ps/server/table_harness.h"
#include "tests/support/every_consistency.h"

namespace syncopate::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TableShard, MakesRowsWhenTheyAreFirstTouchedAndAsTheSeedSays) {
  TableHarness job(1, "async", 3, {.kind = OptimizerKind::kSgd}, 0.5f);
  job.join_all();
  EXPECT_EQ(job.shard.counters().rows_made, 0);
  job.pull(0, {7, 9});
  EXPECT_EQ(job.shard.counters().rows_made, 2);
  std::vector<float> expected(6);
  initial_row(1, 0, 7, 0.5f, std::span(expected).first(3));
  initial_row(1, 0, 9, 0.5f, std::span(expected).last(3));
  EXPECT_EQ(job.worker(0).rows, expected);
  EXPECT_GT(job.shard.counters().table_bytes, 0);
}

TEST(TableShard, AppliesAndAnswersAsyncPushesAsTheyCome) {
  TableHarness job(2, "async");
  job.join_all();
  job.pull(0, {1, 2});
  job.pull(1, {2, 3});
  job.push(0, {1, 10});
  job.push(1, {100, 1000});
  job.pull(0, {1, 2, 3});
  EXPECT_THAT(job.worker(0).rows, ElementsAre(-1, -110, -1000));
}

TEST(TableShard, SyncMakesOneUpdateOfTheMeanOverAllWorkersAlsoOfThoseThatDidNotTouchARow) {
  TableHarness job(2, "sync");
  job.join_all();
  job.pull(0, {1, 2});
  job.pull(1, {2, 3});
  job.push(1, {100, 1000});
  EXPECT_EQ(job.version(), 0);
  job.push(0, {1, 10});
  EXPECT_EQ(job.version(), 1);
  EXPECT_THAT(job.values({1, 2, 3}), ElementsAre(-0.5, -55, -500));
}

// Sums of floats depend on the order: 1e8 + 1 - 1e8 is 0 in the order of ranks, and 1 in another.
TEST(TableShard, SyncSumsInTheOrderOfRanksWhoeverComesFirst) {
  const std::vector<float> gradients{1e8f, 1, -1e8f, 4};
  std::vector<int> order{0, 1, 2, 3};
  do {
    TableHarness job(4, "sync");
    job.join_all();
    for (int rank = 0; rank < 4; ++rank) job.pull(rank, {5});
    for (const int rank : order) job.push(rank, {gradients[static_cast<std::size_t>(rank)]});
    EXPECT_THAT(job.values({5}), ElementsAre(-1));
  } while (std::ranges::next_permutation(order).found);
}

TEST(TableShard, SyncAnswersAPullWhenItsWorkersLastPushHasBeenApplied) {
  TableHarness job(2, "sync");
  job.join_all();
  job.pull(0, {1});
  job.pull(1, {2});
  job.push(0, {1});
  job.pull(0, {2});
  EXPECT_TRUE(job.worker(0).waiting);
  job.push(1, {4});
  EXPECT_THAT(job.worker(0).rows, ElementsAre(-2));
}

TEST(TableShard, BoundedAnswersAPullOnceTheSlowestIsWithinTheBound) {
  TableHarness job(2, "bounded:1");
  job.join_all();
  for (int rank = 0; rank < 2; ++rank) job.pull(rank, {1});
  job.push(0, {1});
  job.pull(0, {1});
  EXPECT_TRUE(job.worker(0).has_rows);
  job.push(0, {1});
  job.pull(0, {1});
  EXPECT_TRUE(job.worker(0).waiting);
  job.push(1, {8});
  EXPECT_THAT(job.worker(0).rows, ElementsAre(-10));
}

TEST(TableShard, CountsTheUpdatesBetweenPullAndPushAsStalenessAndTellsThemWithTheNextRows) {
  TableHarness job(2, "async");
  job.join_all();
  job.pull(1, {1});
  for (int i = 0; i < 3; ++i) {
    job.pull(0, {1});
    job.push(0, {1});
  }
  job.push(1, {1});
  job.pull(1, {1});
  EXPECT_EQ(job.worker(1).staleness, 3);
  EXPECT_EQ(job.shard.counters().staleness_sum, 3);
  EXPECT_EQ(job.shard.counters().staleness_max, 3);
}

TEST(TableShard, LeavesRowsAloneThatAnUpdateDoesNotTouch) {
  TableHarness job(1, "async", 1, {.kind = OptimizerKind::kMomentum, .momentum = 0.5f});
  job.join_all();
  job.pull(0, {1});
  job.push(0, {1});
  for (int i = 0; i < 5; ++i) {
    job.pull(0, {2});
    job.push(0, {1});
  }
  EXPECT_THAT(job.values({1}), ElementsAre(-1));
}

TEST(TableShard, CountsAPushWithoutRowsInTheUpdateNumber) {
  const OptimizerConfig adam{.kind = OptimizerKind::kAdam};
  TableHarness job(1, "sync", 1, adam);
  job.join_all();
  RowTable reference({.optimizer = adam});
  for (const std::vector<RowKey>& keys : {std::vector<RowKey>{3}, {}, {3}}) {
    job.pull(0, keys);
    job.push(0, std::vector<float>(keys.size(), 0.25f));
  }
  const std::vector<RowKey> key{3};
  const std::vector<float> gradient{0.25f};
  for (const std::int64_t number : {1, 3}) {
    ASSERT_TRUE(reference.update(key, gradient, {.learning_rate = 1, .number = number}).ok());
  }
  std::vector<float> expected(1);
  ASSERT_TRUE(reference.read(key, expected).ok());
  EXPECT_EQ(job.values({3}), expected);
}

TEST(TableShard, AppliesWhatAWorkerPushedLastBeforeItLeft) {
  TableHarness job(2, "sync");
  job.join_all();
  for (int rank = 0; rank < 2; ++rank) job.pull(rank, {1});
  job.push(0, {2});
  job.leave(0);
  EXPECT_EQ(job.version(), 0);
  job.push(1, {4});
  EXPECT_THAT(job.values({1}), ElementsAre(-3));
  job.leave(1);
  EXPECT_TRUE(job.worker(0).left && job.worker(1).left);
}

TEST(TableShard, LetsAWorkerReadRowsAsTheyAreAfterItsOwnLastStep) {
  TableHarness job(2, "sync");
  job.join_all();
  for (int rank = 0; rank < 2; ++rank) job.pull(rank, {1});
  job.push(0, {2});
  job.ask(0, {1, 900});
  job.ask(1, {1, 900});
  EXPECT_FALSE(job.worker(0).read);
  EXPECT_THAT(job.worker(1).read.value(), ElementsAre(0, 0));
  job.push(1, {4});
  EXPECT_THAT(job.worker(0).read.value(), ElementsAre(-3, 0));
}

TEST(TableShard, StaysUntilEachWorkerHasSaidGoodbye) {
  TableHarness job(2, "async");
  job.join_all();
  job.pull(1, {6});
  job.push(1, {1});
  job.leave(0);
  EXPECT_FALSE(job.shard.on_goodbye(0).ok());
  job.leave(1);
  EXPECT_TRUE(job.worker(0).left && job.worker(1).left);
  ASSERT_TRUE(job.shard.on_goodbye(1).ok());
  EXPECT_FALSE(job.shard.on_goodbye(1).ok());
  EXPECT_FALSE(job.shard.on_read_rows({.worker = 1}).ok());
  EXPECT_FALSE(job.shard.done());
  job.ask(0, {6});
  EXPECT_THAT(job.worker(0).read.value(), ElementsAre(-1));
  ASSERT_TRUE(job.shard.on_goodbye(0).ok());
  EXPECT_TRUE(job.shard.done());
}

TEST(TableShard, DoesNotStayForAWorkerThatIsLostBehindItsFarewell) {
  TableHarness job(2, "async");
  job.join_all();
  job.leave(0);
  job.leave(1);
  ASSERT_TRUE(job.shard.on_goodbye(1).ok());
  EXPECT_FALSE(job.shard.done());
  job.lose(0);
  EXPECT_TRUE(job.shard.done());
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(job.worker(rank).greetings, ElementsAre(Answer::Kind::kWelcome, Answer::Kind::kFarewell));
  }
}

TEST(TableShard, ListsAllRowsThatThereAreInPages) {
  constexpr std::size_t kCount = TableShard::kKeysAPage + 10;
  const Membership members(1);
  TableShard table({.claim = {.rows = 1 << 20, .width = 1, .rows_a_step = kCount}}, members);
  std::vector<RowKey> keys(kCount);
  for (std::size_t i = 0; i < kCount; ++i) keys[i] = static_cast<RowKey>(3 * i);
  std::vector<float> values(kCount);
  ASSERT_TRUE(table.read(keys, values).ok());

  const TableShard::Page first = *table.list(0, 0);
  EXPECT_EQ(first.total, kCount);
  std::vector<RowKey> listed(first.keys.begin(), first.keys.end());
  ASSERT_TRUE(table.read(std::vector<RowKey>{1}, std::span(values).first(1)).ok());  // behind the list's beginning
  const TableShard::Page second = *table.list(0, listed.size());
  EXPECT_EQ(second.total, kCount);
  listed.insert(listed.end(), second.keys.begin(), second.keys.end());
  EXPECT_EQ(listed, keys);
  EXPECT_FALSE(table.list(0, kCount + 1).ok());
}

TEST(TableShard, RefusesJobsWhoseOptionsDoNotGoTogetherWithTables) {
  for (const std::string& consistency : every_consistency()) {
    if (consistency_of(consistency).traits().tables && consistency_of(consistency).backup_workers() == 0) continue;
    TableHarness job(2, consistency);
    job.join_all();
    EXPECT_THAT(job.shard.refusal(), HasSubstr("row-sparse tables are served")) << consistency;
    EXPECT_EQ(job.worker(1).greetings.back(), Answer::Kind::kReject);
    EXPECT_TRUE(job.shard.done());
  }
}

TEST(TableShard, RefusesTablesThatCannotBe) {
  const TableOwnership good{.rows = 10, .width = 4, .rows_a_step = 3, .limit = 1};
  EXPECT_TRUE(check(good).ok());
  const std::function<void(TableOwnership&)> changes[] = {
      [](TableOwnership& claim) { claim.rows = 0; },
      [](TableOwnership& claim) { claim.rows = (std::uint64_t{1} << 32) + 1; },
      [](TableOwnership& claim) { claim.width = 0; },
      [](TableOwnership& claim) { claim.width = std::uint64_t{1} << 40; },
      [](TableOwnership& claim) { claim.rows_a_step = 0; },
      [](TableOwnership& claim) { claim.rows_a_step = std::uint64_t{1} << 62; },
      [](TableOwnership& claim) { claim.limit = -1; },
      [](TableOwnership& claim) { claim.limit = std::numeric_limits<float>::quiet_NaN(); },
  };
  for (const auto& change : changes) {
    TableOwnership claim = good;
    change(claim);
    EXPECT_EQ(check(claim).code(), Code::kInvalidArgument);
    Shard shard(
        {.workers = 1, .optimizer = {.kind = OptimizerKind::kSgd}},
        [](std::size_t) { return Result<std::span<float>>(std::span<float>()); },
        [](const PendingSends&) { return Status(); });
    ASSERT_TRUE(shard.on_join(0, {.layout_hash = 1, .arena_size = 12, .tables = 1}).ok());
    EXPECT_EQ(shard.on_table(0, 0, claim).status().code(), Code::kInvalidArgument);
    EXPECT_EQ(shard.tables(), 0u);
  }
}

TEST(TableShard, TakesTablesFromTheChiefAloneInTheirOrderAndNoMoreThanItClaimed) {
  Shard shard(
      {.workers = 2, .optimizer = {.kind = OptimizerKind::kSgd}},
      [](std::size_t) { return Result<std::span<float>>(std::span<float>()); },
      [](const PendingSends&) { return Status(); });
  const TableOwnership claim{.rows = 10, .width = 4, .rows_a_step = 3, .number = 1};
  TableOwnership next = claim;
  next.number = 4;  // the model's tables between them are not the servers'
  EXPECT_FALSE(shard.on_table(0, 0, claim).ok());
  ASSERT_TRUE(shard.on_join(0, {.layout_hash = 1, .arena_size = 24, .tables = 2}).ok());
  ASSERT_TRUE(shard.on_join(1, {.layout_hash = 1, .arena_size = 24, .tables = 2})->empty());
  EXPECT_FALSE(shard.on_table(1, 0, claim).ok());
  EXPECT_FALSE(shard.on_table(0, 1, next).ok());
  ASSERT_TRUE(shard.on_table(0, 0, claim)->empty());
  EXPECT_EQ(shard.on_table(0, 1, claim).status().message(),
            "table 1 is the model's number 1, and the one before it number 1: they must ascend");
  EXPECT_EQ(shard.on_table(0, 1, next)->size(), 2u);  // two welcomes
  EXPECT_FALSE(shard.on_table(0, 2, next).ok());
}

// Each differs from what would be right in one thing.
TEST(TableShard, DropsWhatCannotBeRightAndChangesNothing) {
  TableHarness job(2, "async", 2, {.kind = OptimizerKind::kSgd}, 0, 3);
  job.join_all();
  std::vector<RowKey> here, elsewhere;
  for (RowKey key = 0; key < 100; ++key) (shard_of_row(0, key, 3) == 0 ? here : elsewhere).push_back(key);
  ASSERT_GT(here.size(), 2 * TableHarness::kRowsAStep);
  const std::vector<RowKey> some(here.begin(), here.begin() + 3);
  const std::vector<RowKey> unordered{here[1], here[0]}, twice{here[0], here[0]}, strange{elsewhere[0]};
  const std::vector<RowKey> beyond{1000}, many(here.begin(), here.begin() + TableHarness::kRowsAStep + 1);
  RowKey far = 1000;
  while (shard_of_row(0, far, 3) != 0) ++far;
  const std::vector<RowKey> too_far{far};

  const auto refused = [&](const Shard::Answers& answers) {
    EXPECT_EQ(answers.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(job.version(), 0);
  };
  const auto each_pull = [&](const PullRequest& good) {
    const auto with = [&](const auto& change) {
      PullRequest bad = good;
      change(bad);
      refused(job.shard.on_pull(bad));
    };
    with([](PullRequest& pull) { pull.table = 1; });
    with([](PullRequest& pull) { ++pull.clock; });
    with([](PullRequest& pull) { --pull.clock; });
    with([](PullRequest& pull) { pull.slot = kKeyListSlots; });
    with([](PullRequest& pull) { pull.slot = std::size_t{1} << 63; });
    with([](PullRequest& pull) { pull.known = true; });
    for (const std::vector<RowKey>* keys : {&unordered, &twice, &strange, &beyond, &too_far, &many}) {
      with([&](PullRequest& pull) { pull.keys = *keys; });
    }
  };
  each_pull({.worker = 0, .keys = some});
  refused(job.shard.on_pull({.worker = 0, .slot = 3, .known = true}));  // where nothing lies
  refused(job.shard.on_rows_push({.step = {.worker = 0, .clock = 1}, .gradients = {}}));

  job.pull(0, some);
  refused(job.shard.on_pull({.worker = 0, .keys = some}));  // once more
  job.worker(0).gradients.assign(6, 1.0f);
  const RowsPush good = job.next_push(0);
  const std::function<void(RowsPush&)> changes[] = {
      [](RowsPush& push) { push.step.worker = 1; },
      [](RowsPush& push) { push.table = 1; },
      [](RowsPush& push) { ++push.step.clock; },
      [](RowsPush& push) { push.step.clock = -1; },
      [](RowsPush& push) { push.step.learning_rate = -1; },
      [](RowsPush& push) { push.step.learning_rate = std::numeric_limits<float>::infinity(); },
      [](RowsPush& push) { push.gradients = push.gradients.first(5); },
      [](RowsPush& push) { push.gradients = {}; },
  };
  for (const auto& change : changes) {
    RowsPush bad = good;
    change(bad);
    refused(job.shard.on_rows_push(bad));
  }
  for (const std::vector<RowKey>* keys : {&unordered, &twice, &strange, &beyond, &too_far, &many}) {
    refused(job.shard.on_read_rows({.keys = *keys}));
  }
  refused(job.shard.on_read_rows({.table = 1, .keys = some}));
  EXPECT_FALSE(job.shard.on_list_rows(0, 1, 0).ok());
  EXPECT_FALSE(job.shard.on_list_rows(0, 0, 1).ok());
  EXPECT_FALSE(job.shard.on_goodbye(0).ok());

  job.push(0, std::vector<float>(6, 1.0f));
  EXPECT_EQ(job.values(some), std::vector<float>(6, -1.0f));
  // The list of the last push may still be needed: no other takes its slot.
  EXPECT_FALSE(job.shard.on_pull({.worker = 0, .clock = 1, .slot = 0, .keys = some}).ok());
  job.pull(0, some);
}

}  // namespace
}  // namespace syncopate::ps
