#include "experiments/cluster/coordinator/process_roster.h"

#include <gtest/gtest.h>

#include "experiments/config/run_config.h"

namespace syncopate::experiments {
namespace {

using State = ProcessRoster::State;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

constexpr TimePoint kBegin{100s};

// A roster of three workers, and two servers with a standby each.
class ProcessRosterTest : public testing::Test {
 protected:
  ProcessRosterTest() : plan_(plan()), roster_(plan_, kBegin) {}

  static JobPlan plan() {
    RunConfig config;
    config.mode = Mode::kPs;
    config.workers = 3;
    config.servers = 2;
    config.replicas = 1;
    return make_plan(resolve(config, ""), "run-7",
                     {.coordinator = "box", .hosts = {{.name = "box", .slots = 3, .remote = false}}});
  }
  std::size_t index(Role role, int rank) const {
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (plan_.processes[i].role == role && plan_.processes[i].rank == rank) return i;
    }
    ADD_FAILURE() << "no such process";
    return 0;
  }
  std::size_t worker(int rank) const { return index(Role::kWorker, rank); }

  const JobPlan plan_;
  ProcessRoster roster_;
};

TEST_F(ProcessRosterTest, AProcessIsThereUntilItHasFinishedFailedEndedOrIsGivenUp) {
  for (const State state : {State::kExpected, State::kRunning}) {
    roster_[worker(1)].state = state;
    EXPECT_TRUE(roster_.still_there(worker(1)));
  }
  for (const State state : {State::kFinished, State::kFailed, State::kEnded}) {
    roster_[worker(1)].state = state;
    EXPECT_FALSE(roster_.still_there(worker(1)));
  }
  roster_[worker(2)].lost = true;
  EXPECT_FALSE(roster_.still_there(worker(2)));
}

TEST_F(ProcessRosterTest, CountsWorkersThatHaveFinishedAsAlive) {
  roster_[worker(0)].state = State::kFinished;
  roster_[worker(1)].state = State::kFailed;
  EXPECT_EQ(roster_.live_workers(), 2);
  EXPECT_EQ(roster_.chief(), worker(2));
  roster_[worker(2)].lost = true;
  EXPECT_EQ(roster_.live_workers(), 1);
  EXPECT_EQ(roster_.chief(), std::nullopt);
}

TEST_F(ProcessRosterTest, WaitsForTheWorkersThatAreThereToBeReady) {
  roster_[worker(0)].ready_to_train = roster_[worker(2)].ready_to_train = true;
  EXPECT_FALSE(roster_.all_are_ready_to_train());
  roster_[worker(1)].lost = true;
  EXPECT_TRUE(roster_.all_are_ready_to_train());
}

TEST_F(ProcessRosterTest, KnowsTheFurthestStepOfAnyWorker) {
  roster_[worker(1)].step = 17;
  roster_[index(Role::kServer, 0)].step = 40;
  EXPECT_EQ(roster_.furthest_step(), 17);
}

TEST_F(ProcessRosterTest, OneHomeIsEmptyUntilAStepHasGoneThroughIt) {
  const std::size_t server = index(Role::kServer, 1), standby = index(Role::kStandby, 1);
  EXPECT_TRUE(roster_.other_home_is_empty(server));
  roster_[standby].trains = true;
  EXPECT_FALSE(roster_.other_home_is_empty(server));
  roster_[standby].trains = false;
  roster_[standby].lost = true;
  EXPECT_FALSE(roster_.other_home_is_empty(server)) << "there is no other";
  roster_.note_homes_train();
  EXPECT_TRUE(roster_.trains(server));
  EXPECT_FALSE(roster_.other_home_is_empty(standby));
  EXPECT_FALSE(roster_.other_home_is_empty(worker(0))) << "which has no home to share";
}

TEST_F(ProcessRosterTest, KnowsWhetherAnyWorkerIsLeftThatHasTrained) {
  EXPECT_TRUE(roster_.no_worker_trains());
  roster_[worker(1)].trains = true;
  EXPECT_FALSE(roster_.no_worker_trains());
  roster_[worker(1)].lost = true;
  EXPECT_TRUE(roster_.no_worker_trains());
}

TEST_F(ProcessRosterTest, WhoIsStartedAgainIsExpectedAndStillLost) {
  roster_[worker(1)] = {.state = State::kEnded, .lost = true, .trains = true, .pid = 4711, .host = "node2", .step = 9};
  roster_.expect_again(worker(1), kBegin + 5s);
  EXPECT_EQ(roster_[worker(1)].state, State::kExpected);
  EXPECT_TRUE(roster_[worker(1)].lost);
  EXPECT_EQ(roster_[worker(1)].step, 0);
  EXPECT_EQ(roster_.describe(worker(1), kBegin + 6s), "worker 1 (host node2)");
}

TEST_F(ProcessRosterTest, DescribesAProcessForAPerson) {
  roster_[worker(1)] = {.pid = 4711, .host = "box", .operation = "backward", .step = 17, .last_heard = kBegin};
  EXPECT_EQ(roster_.describe(worker(1), kBegin + 400ms),
            "worker 1 (host box, pid 4711; backward at step 17, last heard 0.4 s ago)");
}

TEST_F(ProcessRosterTest, IsOverWhenAllHaveEnded) {
  for (std::size_t i = 0; i + 1 < roster_.size(); ++i) roster_[i].state = State::kEnded;
  EXPECT_FALSE(roster_.all_have_ended());
  roster_[roster_.size() - 1].state = State::kEnded;
  EXPECT_TRUE(roster_.all_have_ended());
}

}  // namespace
}  // namespace syncopate::experiments
