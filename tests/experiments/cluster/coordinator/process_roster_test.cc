#include "experiments/cluster/coordinator/process_roster.h"

#include <gtest/gtest.h>

#include "experiments/config/resolved_run.h"
#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using Event = ProcessEvent;
using Phase = ProcessPhase;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

constexpr TimePoint kBegin{100s};

// A roster of three workers, and two servers with a standby each.
class ProcessRosterTest : public testing::Test {
 protected:
  ProcessRosterTest() : plan_(plan()), roster_(plan_, kBegin) {}

  static JobPlan plan() {
    RunRequest config;
    config.mode = Mode::kPs;
    config.workers = 3;
    config.servers = 2;
    config.replicas = 1;
    return make_plan(resolved(config), "run-7",
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
  void apply(std::size_t process, std::initializer_list<ProcessEvent> events) {
    for (const ProcessEvent event : events) roster_.apply(process, event);
  }

  const JobPlan plan_;
  ProcessRoster roster_;
};

TEST_F(ProcessRosterTest, AProcessIsThereUntilItHasFinishedFailedEndedOrIsGivenUp) {
  EXPECT_TRUE(roster_.still_there(worker(1)));
  roster_.apply(worker(1), Event::kHello);
  EXPECT_TRUE(roster_.still_there(worker(1)));
  for (const Event event : {Event::kFinished, Event::kFailure, Event::kExit}) {
    EXPECT_EQ(roster_.apply(worker(1), event), event == Event::kFinished  ? Phase::kConnected
                                               : event == Event::kFailure ? Phase::kFinished
                                                                          : Phase::kFailed);
    EXPECT_FALSE(roster_.still_there(worker(1)));
  }
  roster_.apply(worker(2), Event::kLoss);
  EXPECT_FALSE(roster_.still_there(worker(2)));
}

TEST_F(ProcessRosterTest, CountsWorkersThatHaveFinishedAsAlive) {
  roster_.apply(worker(0), Event::kFinished);
  roster_.apply(worker(1), Event::kFailure);
  EXPECT_EQ(roster_.live_workers(), 2);
  EXPECT_EQ(roster_.chief(), worker(2));
  roster_.apply(worker(2), Event::kLoss);
  EXPECT_EQ(roster_.live_workers(), 1);
  EXPECT_EQ(roster_.chief(), std::nullopt);
}

TEST_F(ProcessRosterTest, WaitsForTheWorkersThatAreThereToBeReady) {
  for (const int rank : {0, 2}) apply(worker(rank), {Event::kHello, Event::kReady});
  EXPECT_FALSE(roster_.all_are_ready_to_train());
  roster_.apply(worker(1), Event::kLoss);
  EXPECT_TRUE(roster_.all_are_ready_to_train());
  roster_.on_epoch_begins();
  EXPECT_FALSE(roster_.all_are_ready_to_train()) << "all ask again";
}

TEST_F(ProcessRosterTest, WorkersLeaveOnceAllThatAreThereHaveMadeTheirLastStep) {
  for (const int rank : {0, 1, 2}) apply(worker(rank), {Event::kHello, Event::kReady, Event::kTrainingBegins});
  for (const int rank : {0, 1}) roster_.apply(worker(rank), Event::kLastStep);
  EXPECT_FALSE(roster_.all_are_leaving());
  roster_.apply(worker(2), Event::kLoss);
  EXPECT_TRUE(roster_.all_are_leaving());
  roster_.apply(worker(1), Event::kFinalWeights);
  EXPECT_TRUE(roster_.all_are_leaving());
  roster_.on_epoch_begins();
  EXPECT_FALSE(roster_.all_are_leaving()) << "worker 0 comes to its last step once more";
  EXPECT_TRUE(roster_.trains(worker(0)));
}

TEST_F(ProcessRosterTest, AWorkerThatLeavesWithoutAStepHoldsNothing) {
  apply(worker(0), {Event::kHello, Event::kLastStep});
  EXPECT_EQ(roster_.phase(worker(0)), Phase::kLeavingWithoutStep);
  EXPECT_FALSE(roster_.trains(worker(0)));
  roster_.on_step(worker(0), 0);
  EXPECT_EQ(roster_.phase(worker(0)), Phase::kLeaving);
  EXPECT_TRUE(roster_.trains(worker(0)));
}

TEST_F(ProcessRosterTest, KnowsTheFurthestStepOfAnyWorker) {
  roster_.on_report(worker(1), "training", 17);
  roster_.on_report(index(Role::kServer, 0), "serving", 40);
  EXPECT_EQ(roster_.furthest_step(), 17);
}

TEST_F(ProcessRosterTest, OneReplicaIsEmptyUntilAStepHasGoneThroughIt) {
  const std::size_t server = index(Role::kServer, 1), standby = index(Role::kStandby, 1);
  EXPECT_TRUE(roster_.other_replica_is_empty(server));
  apply(standby, {Event::kHello, Event::kTrainingBegins});
  EXPECT_FALSE(roster_.other_replica_is_empty(server));
  apply(standby, {Event::kLoss, Event::kAdmitted});
  EXPECT_TRUE(roster_.other_replica_is_empty(server)) << "it has only just come";
  roster_.apply(standby, Event::kLoss);
  EXPECT_FALSE(roster_.other_replica_is_empty(server)) << "there is no other";
  roster_.apply(server, Event::kHello);
  roster_.on_step(worker(0), 0);
  EXPECT_TRUE(roster_.trains(server));
  EXPECT_FALSE(roster_.other_replica_is_empty(standby));
  EXPECT_FALSE(roster_.other_replica_is_empty(worker(0))) << "which has no home to share";
}

TEST_F(ProcessRosterTest, KnowsWhetherAnyWorkerIsLeftThatHasTrained) {
  EXPECT_TRUE(roster_.no_worker_trains());
  apply(worker(1), {Event::kHello, Event::kStep});
  EXPECT_FALSE(roster_.no_worker_trains());
  roster_.apply(worker(1), Event::kLoss);
  EXPECT_TRUE(roster_.no_worker_trains());
}

TEST_F(ProcessRosterTest, WhoIsStartedAgainIsExpectedAndStillLost) {
  roster_.on_hello(worker(1), 4711, "node2");
  roster_.on_report(worker(1), "training", 9);
  apply(worker(1), {Event::kStep, Event::kExit, Event::kLoss});
  roster_.plan_restart(worker(1), kBegin + 5s);
  EXPECT_TRUE(roster_.any_awaits_restart());
  EXPECT_EQ(roster_[worker(1)].restart_at, kBegin + 5s);
  roster_.on_restart(worker(1), kBegin + 5s);
  EXPECT_EQ(roster_.phase(worker(1)), Phase::kRestarting);
  EXPECT_TRUE(is_lost(roster_.phase(worker(1))));
  EXPECT_FALSE(roster_.any_awaits_restart());
  EXPECT_EQ(roster_[worker(1)].step, 0);
  EXPECT_EQ(roster_[worker(1)].restarts, 1);
  EXPECT_EQ(roster_.describe(worker(1), kBegin + 6s), "worker 1 (host node2)");
  roster_.on_hello(worker(1), 4712, "node2");
  EXPECT_FALSE(roster_.still_there(worker(1)));
  roster_.on_admitted(worker(1));
  EXPECT_TRUE(roster_.still_there(worker(1)));
  EXPECT_EQ(roster_[worker(1)].restarts, 0);
}

TEST_F(ProcessRosterTest, DescribesAProcessForAPerson) {
  roster_.on_hello(worker(1), 4711, "box");
  roster_.on_report(worker(1), "backward", 17);
  EXPECT_EQ(roster_.describe(worker(1), kBegin + 400ms),
            "worker 1 (host box, pid 4711; backward at step 17, last heard 0.4 s ago)");
}

TEST_F(ProcessRosterTest, SaysOfMembersOfOneProcessWhoTheOtherIs) {
  JobPlan plan = plan_;
  const std::size_t server = index(Role::kServer, 1);
  plan.processes[server].within = worker(1);
  ProcessRoster roster(plan, kBegin);
  EXPECT_EQ(roster.describe(worker(1), kBegin), "worker 1, with server 1 in its process (host box)");
  EXPECT_EQ(roster.describe(server, kBegin), "server 1 in the process of worker 1 (host box)");
  EXPECT_EQ(roster.describe(worker(2), kBegin), "worker 2 (host box)");
}

TEST_F(ProcessRosterTest, DescribesAProcessOfASimulatedClusterWithoutAPid) {
  roster_.on_hello(worker(1), 0, "simulated");
  roster_.on_report(worker(1), "backward", 17);
  EXPECT_EQ(roster_.describe(worker(1), kBegin + 400ms),
            "worker 1 (host simulated; backward at step 17, last heard 0.4 s ago)");
}

TEST_F(ProcessRosterTest, IsOverWhenAllHaveEnded) {
  for (std::size_t i = 0; i + 1 < roster_.size(); ++i) roster_.apply(i, Event::kExit);
  EXPECT_FALSE(roster_.all_have_ended());
  roster_.apply(roster_.size() - 1, Event::kExit);
  EXPECT_TRUE(roster_.all_have_ended());
}

}  // namespace
}  // namespace syncopate::experiments
