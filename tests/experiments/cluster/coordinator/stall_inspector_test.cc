#include "experiments/cluster/coordinator/stall_inspector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

constexpr const char* kStalledIn = "step 17, bucket 3 of 9 (all_reduce, 1.05 MB)";

// Workers that say each second where they are; a stall of 5 s is reported.
class Histories {
 public:
  explicit Histories(int workers, Duration warning = 5s) : inspector_(workers, {.warning = warning, .heartbeat = 1s}) {}

  // In operation `number`, for `age` now.
  void waits(int rank, std::int64_t number, Duration age, int waits_for = -1) {
    inspector_.on_heartbeat(
        rank, "synchronising", 17,
        CollectiveReport{.begun = number, .what = kStalledIn, .under_way = true, .age = age, .waits_for = waits_for},
        now());
  }
  // Has done `number` operations, and computes.
  void computes(int rank, std::int64_t number) {
    inspector_.on_heartbeat(rank, "forward", 17, CollectiveReport{.begun = number, .what = "another"}, now());
  }
  void says_nothing_of_collectives(int rank) { inspector_.on_heartbeat(rank, "handing in", 17, {}, now()); }
  void pass(Duration time) { clock_.advance(time); }

  TimePoint now() const { return clock_.now(); }
  std::vector<std::string> lines() { return inspector_.take_lines(now()); }
  std::optional<std::string> stall(Duration at_least) const { return inspector_.stall(at_least, now()); }

 private:
  ManualClock clock_;
  StallInspector inspector_;
};

TEST(StallInspector, NamesWhoWaitsAndWhoIsMissingOnceTheyHaveWaitedForTheWarning) {
  Histories run(4);
  for (int rank : {0, 1, 3}) run.waits(rank, 20, 4900ms);
  run.computes(2, 19);
  EXPECT_THAT(run.lines(), IsEmpty());
  run.pass(1s);
  run.computes(2, 19);
  run.pass(400ms);
  for (int rank : {0, 1, 3}) run.waits(rank, 20, 6300ms);
  EXPECT_THAT(run.lines(),
              ElementsAre("stalled for 6.3 s: step 17, bucket 3 of 9 (all_reduce, 1.05 MB): ranks 0, 1 and 3 wait; "
                          "missing: rank 2 (forward at step 17, last heard 0.4 s ago)"));
}

TEST(StallInspector, ReportsAStallOnceAndItsEndOnce) {
  Histories run(2);
  for (int second = 5; second < 9; ++second) {
    run.waits(0, 20, std::chrono::seconds(second));
    run.computes(1, 19);
    EXPECT_THAT(run.lines(), testing::SizeIs(second == 5 ? 1 : 0));
    run.pass(1s);
  }
  run.computes(0, 20);
  EXPECT_THAT(run.lines(), ElementsAre("went on after 9.0 s: step 17, bucket 3 of 9 (all_reduce, 1.05 MB)"));
  EXPECT_THAT(run.lines(), IsEmpty());
}

TEST(StallInspector, ReportsTheNextStallAnew) {
  Histories run(2);
  run.waits(0, 20, 5s);
  EXPECT_THAT(run.lines(), testing::SizeIs(1));
  run.pass(5s);
  run.waits(0, 21, 5s);
  EXPECT_THAT(run.lines(),
              ElementsAre(testing::StartsWith("went on after 10.0 s"), testing::StartsWith("stalled for")));
}

TEST(StallInspector, TakesNoHistoryOfShortWaitsForAStall) {
  Histories run(2);
  for (int step = 0; step < 100; ++step) {
    run.waits(0, step + 1, 900ms);
    run.computes(1, step);
    EXPECT_THAT(run.lines(), IsEmpty());
    run.pass(1s);
  }
}

// The age of an operation is as it was told: in the time since, it may have ended.
TEST(StallInspector, DoesNotTakeTheTimeBetweenHeartbeatsForAWait) {
  Histories run(2, 500ms);
  run.waits(0, 20, 100ms);
  run.computes(1, 19);
  run.pass(900ms);
  EXPECT_THAT(run.lines(), IsEmpty());
}

// A worker that is stopped in the middle of an operation has told that it is in it, but waits for nobody.
TEST(StallInspector, TakesAWorkerThatIsNotHeardAnyMoreForMissing) {
  Histories run(3);
  run.waits(1, 20, 10ms);
  run.pass(5s);
  run.waits(0, 20, 5s);
  run.waits(2, 20, 5s);
  EXPECT_THAT(run.lines(),
              ElementsAre(testing::EndsWith(
                  ": ranks 0 and 2 wait; missing: rank 1 (synchronising at step 17, last heard 5.0 s ago)")));
}

// Who has got through computes, or waits in the next one for the same.
TEST(StallInspector, CountsWhoHasLeftTheOperationNotAsMissing) {
  Histories run(4);
  run.waits(0, 20, 6s);
  run.computes(1, 20);
  run.waits(2, 21, 6s);
  run.computes(3, 18);
  EXPECT_THAT(
      run.stall(5s),
      Optional(testing::EndsWith(": ranks 0 and 2 wait; missing: rank 3 (forward at step 17, last heard 0.0 s ago)")));
}

TEST(StallInspector, NamesWhoHasNeverBeenHeard) {
  Histories run(2);
  run.waits(0, 1, 5s);
  EXPECT_THAT(run.stall(5s), Optional(testing::EndsWith(": rank 0 waits; missing: rank 1 (not heard yet)")));
}

// A network that has lost something, say.
TEST(StallInspector, SaysWhoWaitsForWhomWhereAllHaveCome) {
  Histories run(3);
  for (int rank : {0, 1, 2}) run.waits(rank, 20, 5s, rank == 1 ? -1 : (rank + 2) % 3);
  EXPECT_THAT(run.stall(5s),
              Optional(testing::EndsWith(
                  ": ranks 0, 1 and 2 wait; none is missing; rank 0 waits for rank 2; rank 2 waits for rank 1")));
}

TEST(StallInspector, KnowsOfTheStallWithoutAWarning) {
  Histories run(2, 0s);
  run.waits(0, 20, 7s);
  EXPECT_THAT(run.lines(), IsEmpty());
  EXPECT_TRUE(run.stall(7s));
  EXPECT_FALSE(run.stall(8s));
}

// Rank 1 was stopped within operation 19, which rank 2 got through.
TEST(StallInspector, FindsTheFirstOfTheOperationsThatRanksWaitInThoughItWasToldEarlier) {
  Histories run(3);
  run.waits(0, 19, 4900ms);
  run.pass(300ms);
  run.waits(2, 20, 5100ms);
  EXPECT_THAT(run.lines(), ElementsAre(testing::EndsWith(": ranks 0 and 2 wait; missing: rank 1 (not heard yet)")));
}

// All go on at once, but do not tell so at once.
TEST(StallInspector, DoesNotTakeWhatWasToldBeforeAStallEndedForAnotherOne) {
  Histories run(3);
  run.waits(0, 20, 5s);
  run.waits(2, 21, 5s);
  EXPECT_THAT(run.lines(), testing::SizeIs(1));
  run.pass(500ms);
  run.computes(0, 27);
  EXPECT_THAT(run.lines(), ElementsAre(testing::StartsWith("went on after 5.5 s")));
  EXPECT_THAT(run.lines(), IsEmpty());
}

// When all who waited have fallen silent, nothing has gone on.
TEST(StallInspector, DoesNotTakeSilenceForTheEndOfAStall) {
  Histories run(2);
  run.waits(0, 20, 5s);
  EXPECT_THAT(run.lines(), testing::SizeIs(1));
  run.pass(10s);
  EXPECT_THAT(run.lines(), IsEmpty());
  EXPECT_FALSE(run.stall(5s));
}

TEST(StallInspector, EndsTheStallOfAWorkerThatHasDoneWithCollectives) {
  Histories run(2);
  run.waits(0, 20, 5s);
  EXPECT_THAT(run.lines(), testing::SizeIs(1));
  run.says_nothing_of_collectives(0);
  EXPECT_THAT(run.lines(), ElementsAre(testing::StartsWith("went on")));
}

}  // namespace
}  // namespace syncopate::experiments
