#include "experiments/cluster/coordinator/fault_injector.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <set>

#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TimePoint at(int ms) { return TimePoint(std::chrono::milliseconds(1'000'000 + ms)); }

// A run of two servers, three workers and an evaluator, whose processes are notes on paper.
class FaultInjectorTest : public testing::Test {
 protected:
  FaultInjector injector(const std::string& faults) {
    RunRequest asked;
    asked.mode = Mode::kPs;
    asked.workers = 3;
    asked.servers = 2;
    asked.faults = *FaultSchedule::parse(faults);
    const ResolvedRun config = resolved(asked);
    plan_ = make_plan(config, "run", "here");
    return {config,
            1000,
            plan_,
            {.still_there = [this](std::size_t process) { return !gone_.contains(plan_.processes[process].name()); },
             .trains = [this](std::size_t process) { return !gone_.contains(plan_.processes[process].name()); },
             .signal =
                 [this](std::size_t process, int signal) {
                   done_.push_back(fmt::format("{} to {}", signal, plan_.processes[process].name()));
                   return std::optional<pid_t>(100 + static_cast<pid_t>(process));
                 },
             .impair_links =
                 [this](std::size_t process, LinkFault fault, Duration length) {
                   done_.push_back(fmt::format("link fault {} of {} for {} s", static_cast<int>(fault),
                                               plan_.processes[process].name(), seconds(length)));
                 },
             .report = [this](const std::string& line) { lines_.push_back(line); }}};
  }
  std::size_t index(const std::string& name) const {
    return static_cast<std::size_t>(std::ranges::find(plan_.processes, name, &ProcessSpec::name) -
                                    plan_.processes.begin());
  }

  JobPlan plan_;
  std::set<std::string> gone_;
  std::vector<std::string> done_, lines_;
};

TEST_F(FaultInjectorTest, KillsAtAStepAndSaysSo) {
  FaultInjector faults = injector("kill:worker1@step200");
  faults.on_training_begins(at(0));
  EXPECT_THAT(faults.announced_steps(index("worker 1")), ElementsAre(200));
  EXPECT_THAT(faults.announced_steps(index("worker 0")), IsEmpty());
  EXPECT_THAT(faults.announced_steps(index("server 0")), IsEmpty());
  faults.on_step_begins(index("worker 1"), 200, at(1500));
  EXPECT_THAT(done_, ElementsAre(fmt::format("{} to worker 1", SIGKILL)));
  EXPECT_THAT(lines_, ElementsAre("fault: killed worker 1 (pid 103) at step 200"));
  faults.end();
  ASSERT_THAT(faults.records(), SizeIs(1));
  const FaultRecord record = faults.records()[0];
  EXPECT_EQ(record.fault, "kill:worker1@step200");
  EXPECT_EQ(record.outcome, "killed worker 1 (pid 103)");
  EXPECT_EQ(record.at, at(1500));
  EXPECT_EQ(record.step, 200);
  EXPECT_EQ(record.training_seconds, 1.5);
}

TEST_F(FaultInjectorTest, StopsContinuesAndImpairsLinks) {
  FaultInjector faults = injector(
      "stop:server1@1s+500ms,cut:worker2@2s+2s,delay:worker0@2s+1s,duplicate:server0@2s+1s,reorder:server1@2s+1s");
  faults.on_training_begins(at(0));
  faults.act(at(1000));
  EXPECT_EQ(faults.next(), at(1500));
  faults.act(at(1500));
  faults.act(at(2000));
  EXPECT_THAT(done_, ElementsAre(fmt::format("{} to server 1", SIGSTOP), fmt::format("{} to server 1", SIGCONT),
                                 "link fault 0 of worker 2 for 2 s", "link fault 1 of worker 0 for 1 s",
                                 "link fault 2 of server 0 for 1 s", "link fault 3 of server 1 for 1 s"));
  EXPECT_THAT(lines_, ElementsAre("fault: stopped server 1 (pid 101) for 0.5 s, 1.00 s after training began",
                                  "fault: cut the links of worker 2 for 2 s, 2.00 s after training began",
                                  "fault: delayed messages from worker 0 for 1 s, 2.00 s after training began",
                                  "fault: duplicated the messages from server 0 for 1 s, 2.00 s after training began",
                                  "fault: reordered messages from server 1 for 1 s, 2.00 s after training began"));
}

// Two in a row might be all that hold the weights.
TEST_F(FaultInjectorTest, ChurnCountsNobodyWhoWasKilledAlsoBeforeThatIsNoticed) {
  FaultInjector faults = injector("churn:1ms");
  faults.on_training_begins(at(0));
  for (int ms = 1; ms < 1000; ++ms) faults.act(at(ms));
  EXPECT_THAT(done_, SizeIs(2));
  gone_.insert("worker 0");
  gone_.insert("worker 1");
  gone_.insert("worker 2");
  faults.act(at(1000));
  gone_.clear();  // all were started again
  for (int ms = 1001; ms < 2000; ++ms) faults.act(at(ms));
  EXPECT_THAT(done_, SizeIs(4));
}

TEST_F(FaultInjectorTest, LeavesAloneWhoIsNotThere) {
  FaultInjector faults = injector("kill:worker1@1s");
  faults.on_training_begins(at(0));
  gone_.insert("worker 1");
  faults.act(at(1000));
  faults.end();
  EXPECT_THAT(done_, IsEmpty());
  ASSERT_THAT(faults.records(), SizeIs(1));
  EXPECT_EQ(faults.records()[0].outcome, "worker 1 is not there");
  EXPECT_FALSE(faults.records()[0].at);
}

TEST_F(FaultInjectorTest, LetsGoOfWhatIsStoppedAtTheEndAndInjectsNoMore) {
  FaultInjector faults = injector("stop:worker0@1s+60s,kill:worker1@2s,kill:worker2@step500");
  faults.on_training_begins(at(0));
  faults.act(at(1000));
  faults.end();
  EXPECT_EQ(faults.next(), TimePoint::max());
  faults.act(at(3000));
  faults.end();
  EXPECT_THAT(done_, ElementsAre(fmt::format("{} to worker 0", SIGSTOP), fmt::format("{} to worker 0", SIGCONT)));
  ASSERT_THAT(faults.records(), SizeIs(3));
  EXPECT_EQ(faults.records()[1].fault, "kill:worker1@2s");
  EXPECT_EQ(faults.records()[2].fault, "kill:worker2@step500");
}

TEST_F(FaultInjectorTest, SaysWhyAFaultWasNeverDue) {
  FaultInjector faults = injector("kill:worker1@2s,kill:worker2@step500,kill:server0@step600,churn:1000s");
  faults.on_training_begins(at(0));
  faults.on_steps(index("worker 2"), 300, at(900));
  faults.on_steps(index("worker 0"), 400, at(1200));
  faults.end();
  std::vector<std::string> lines;
  for (const FaultRecord& record : faults.records()) {
    EXPECT_FALSE(record.at.has_value());
    lines.push_back(record.fault + ": " + record.outcome);
  }
  EXPECT_THAT(lines, ElementsAre("kill:worker1@2s: it was never due: training lasted 1.2 s",
                                 "kill:worker2@step500: it was never due: worker 2 made 300 steps",
                                 "kill:server0@step600: it was never due: no worker made more than 400 steps",
                                 "churn:1000s: it struck nobody: training lasted 1.2 s"));
}

TEST_F(FaultInjectorTest, SaysThatNothingWasDueWhereTrainingNeverBegan) {
  FaultInjector faults = injector("kill:worker2@step500");
  faults.end();
  EXPECT_EQ(faults.records()[0].outcome, "it was never due: training never began");
}

TEST_F(FaultInjectorTest, ChurnsWorkersThatAreThere) {
  FaultInjector faults = injector("churn:1s");
  faults.on_training_begins(at(0));
  for (int i = 0; i < 20; ++i) {
    gone_ = {"worker 0"};
    const TimePoint next = faults.next();
    faults.act(next);
    gone_ = {"worker 0", "worker 1", "worker 2"};  // it ends, and is started again
    faults.act(next);
  }
  ASSERT_THAT(done_, SizeIs(20));
  EXPECT_THAT(done_, testing::Each(testing::Not(testing::HasSubstr("worker 0"))));
  EXPECT_THAT(lines_[0],
              testing::MatchesRegex("fault: killed worker [12] \\(pid 10[34]\\), .* s after training began"));
}

TEST_F(FaultInjectorTest, DoesNothingWithoutFaults) {
  FaultInjector faults = injector("");
  faults.on_training_begins(at(0));
  faults.act(at(1000));
  EXPECT_EQ(faults.next(), TimePoint::max());
  faults.end();
  EXPECT_THAT(faults.records(), IsEmpty());
}

}  // namespace
}  // namespace syncopate::experiments
