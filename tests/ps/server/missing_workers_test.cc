#include "ps/server/missing_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ps/server/shard_harness.h"
#include "tests/ps/server/table_harness.h"
#include "tests/support/every_consistency.h"

namespace syncopate::ps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Duration kPatience = std::chrono::seconds(16);
constexpr Duration kInterval = std::chrono::seconds(1);

std::vector<int> ranks_awaited_at(const Shard& shard) {
  std::vector<int> ranks;
  for (const AwaitedWorker& who : awaited_at(shard)) ranks.push_back(who.worker);
  return ranks;
}

TEST(AwaitedWorkers, AreInSyncAllWhoHaveNotPushedWhereSomebodyHas) {
  ShardHarness job(3, "sync", 8);
  job.join(0);
  EXPECT_THAT(awaited_at(job.shard), IsEmpty());  // others may still load their data
  job.join(1);
  job.join(2);
  EXPECT_THAT(awaited_at(job.shard), IsEmpty());
  job.push(1, 1);
  EXPECT_THAT(awaited_at(job.shard), ElementsAre(AwaitedWorker{0, 0}, AwaitedWorker{2, 0}));
  job.push(0, 1);
  EXPECT_THAT(awaited_at(job.shard), ElementsAre(AwaitedWorker{2, 0}));
  job.push(2, 1);
  EXPECT_THAT(awaited_at(job.shard), IsEmpty());
  job.push(2, 1);
  EXPECT_THAT(awaited_at(job.shard), ElementsAre(AwaitedWorker{0, 1}, AwaitedWorker{1, 1}));
}

TEST(AwaitedWorkers, AreNeitherLostNorLeaving) {
  ShardHarness job(3, "sync", 8);
  job.join_all();
  job.lose(2);
  job.push(0, 1);
  EXPECT_THAT(ranks_awaited_at(job.shard), ElementsAre(1));
  job.push(1, 1);
  job.leave(1);
  EXPECT_THAT(ranks_awaited_at(job.shard), IsEmpty());
  job.push(0, 1);
  EXPECT_THAT(ranks_awaited_at(job.shard), IsEmpty());
}

TEST(AwaitedWorkers, AreBoundedWhoIsFurtherBehindThanWhoWaitsMayBe) {
  ShardHarness job(3, "bounded:1", 8);
  job.join_all();
  job.push(0, 1);
  job.push(1, 1);
  EXPECT_THAT(ranks_awaited_at(job.shard), IsEmpty());
  job.push(0, 1);
  EXPECT_TRUE(job.worker(0).waiting);
  EXPECT_THAT(ranks_awaited_at(job.shard), ElementsAre(2));  // worker 1 is within the bound
  job.push(2, 1);
  EXPECT_FALSE(job.worker(0).waiting);
  EXPECT_THAT(ranks_awaited_at(job.shard), IsEmpty());
}

TEST(AwaitedWorkers, AreNoneWhereABackupWorkerHasTakenTheirPlace) {
  ShardHarness job(3, "sync+1", 8);
  job.join_all();
  job.push(0, 1);
  EXPECT_THAT(ranks_awaited_at(job.shard), ElementsAre(1, 2));
  job.push(1, 1);
  EXPECT_THAT(ranks_awaited_at(job.shard), IsEmpty());
}

TEST(AwaitedWorkers, AreNoneWhereEverybodyIsAnsweredAtOnce) {
  for (const std::string& consistency :
       every_consistency([](const ConsistencyTraits& traits) { return !traits.waits_for_others(); })) {
    ShardHarness job(2, consistency, 8);
    job.join_all();
    for (int i = 0; i < 5; ++i) job.push(0, 1, 0.5f);
    EXPECT_THAT(ranks_awaited_at(job.shard), IsEmpty());
  }
}

// They may train for hours, until they leave, too.
TEST(AwaitedWorkers, AreNoneOfThoseWhoAreOutlivedByALeaver) {
  ShardHarness job(2, "sync", 8);
  job.join_all();
  job.leave(0);
  EXPECT_THAT(ranks_awaited_at(job.shard), IsEmpty());
}

TEST(AwaitedWorkers, OfATableAreWhoHasNotPushedItsRowsWhereSomebodyPullsOrReads) {
  TableHarness job(2, "sync");
  job.join_all();
  job.pull(0, {1});
  job.pull(1, {2});
  job.push(0, {1});
  EXPECT_THAT(awaited_at(job.shard), IsEmpty());  // nobody has asked for more yet
  job.ask(0, {1});
  EXPECT_THAT(awaited_at(job.shard), ElementsAre(AwaitedWorker{1, 0}));
  job.pull(0, {1});
  EXPECT_THAT(awaited_at(job.shard), ElementsAre(AwaitedWorker{1, 0}));
  job.push(1, {1});
  EXPECT_THAT(awaited_at(job.shard), IsEmpty());
}

class Watch {
 public:
  // Looks so many times while `awaited` are; whom it told at the last.
  std::vector<int> look(int times, const std::vector<AwaitedWorker>& awaited) {
    std::vector<int> missing;
    for (int i = 0; i < times; ++i) {
      EXPECT_THAT(missing, IsEmpty()) << "told too early";
      now_ += kInterval;
      EXPECT_TRUE(watch_.is_due(now_));
      missing = watch_.look(awaited, now_);
      EXPECT_FALSE(watch_.is_due(now_ + kInterval / 2));
    }
    return missing;
  }
  // The process is stopped.
  void stop(Duration length) { now_ += length; }
  void forgive() { watch_.forgive(); }

 private:
  TimePoint now_ = TimePoint() + std::chrono::hours(1);
  MissingWorkers watch_{kPatience};
};

TEST(MissingWorkers, AreAwaitedForTheWholePatienceWithoutAPush) {
  Watch watch;
  EXPECT_THAT(watch.look(17, {{1, 5}}), ElementsAre(1));
}

TEST(MissingWorkers, AreToldOnce) {
  Watch watch;
  EXPECT_THAT(watch.look(17, {{1, 5}}), ElementsAre(1));
  EXPECT_THAT(watch.look(100, {{1, 5}}), IsEmpty());
}

TEST(MissingWorkers, AreNotThoseWhoPushThoughTheyAreAlwaysAwaited) {
  Watch watch;
  for (std::int64_t pushes = 0; pushes < 10; ++pushes) EXPECT_THAT(watch.look(16, {{1, pushes}}), IsEmpty());
}

TEST(MissingWorkers, AreNotThoseWhoWereNotAwaitedInBetween) {
  Watch watch;
  EXPECT_THAT(watch.look(16, {{0, 3}, {1, 5}}), IsEmpty());
  EXPECT_THAT(watch.look(1, {{0, 3}}), ElementsAre(0));
  EXPECT_THAT(watch.look(16, {{0, 3}, {1, 5}}), IsEmpty());
  EXPECT_THAT(watch.look(1, {{0, 3}, {1, 5}}), ElementsAre(1));
}

// What worker 1 has sent meanwhile lies there, and has not been taken yet.
TEST(MissingWorkers, AreNotThoseWhomAProcessThatWasStoppedItselfHasNotHeard) {
  Watch watch;
  EXPECT_THAT(watch.look(8, {{1, 5}}), IsEmpty());
  watch.stop(10 * kPatience);
  EXPECT_THAT(watch.look(8, {{1, 5}}), IsEmpty());
  EXPECT_THAT(watch.look(1, {{1, 5}}), ElementsAre(1));
}

// Who pushes nothing may wait for somebody that does not run.
TEST(MissingWorkers, AreNotThoseWhoWereExcusedInBetween) {
  Watch watch;
  EXPECT_THAT(watch.look(16, {{1, 5}}), IsEmpty());
  watch.forgive();
  EXPECT_THAT(watch.look(16, {{1, 5}}), IsEmpty());
  EXPECT_THAT(watch.look(1, {{1, 5}}), ElementsAre(1));
}

}  // namespace
}  // namespace syncopate::ps
