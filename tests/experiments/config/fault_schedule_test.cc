#include "experiments/config/fault_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace syncopate::experiments {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const FaultScene kScene{.workers = 4, .servers = 2, .total_steps = 1000, .timeout = std::chrono::seconds(2)};

FaultSchedule parsed(const std::string& text) {
  const Result<FaultSchedule> schedule = FaultSchedule::parse(text);
  EXPECT_TRUE(schedule.ok()) << schedule.status().message();
  return schedule.ok() ? *schedule : FaultSchedule();
}

std::string fault_refusal(const std::string& text) {
  const Status status = FaultSchedule::parse(text).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
  return status.message();
}

TEST(FaultSchedule, IsWrittenBackAsItWasRead) {
  for (const char* text :
       {"", "kill:server0@step200", "stop:worker1@10s+3s", "cut:worker2@5s+2s", "kill:evaluator@250ms",
        "delay:worker0@step1+2s", "duplicate:server0@1s+250ms", "reorder:any-worker@1s+2s", "kill:any-worker@step0",
        "nan:worker1@step50", "stop:any-server@1.5s+500ms", "kill:standby1@step7", "random:7", "random:7:any",
        "churn:4s", "kill:worker0@step1,stop:server1@2s+1s,random:18446744073709551615,churn:1.5s"}) {
    EXPECT_EQ(parsed(text).to_string(), text);
  }
}

TEST(FaultSchedule, SaysWhatIsWrongWithAnEntryAndWhatWouldBeRight) {
  EXPECT_EQ(fault_refusal("pause:worker1@5s"),
            "'pause:worker1@5s': must begin with kill:, stop:, cut:, delay:, duplicate:, "
            "reorder:, nan:, random: or churn:");
  EXPECT_EQ(fault_refusal("kill:server0"), "'kill:server0': when is missing, as in server0@step200 or server0@10s");
  EXPECT_EQ(fault_refusal("kill:"), "'kill:': when is missing, as in worker1@step200 or worker1@10s");
  EXPECT_EQ(fault_refusal("kill:wrker1@5s"),
            "'kill:wrker1@5s': 'wrker1' must be worker, server or standby and a rank, as in worker1, or evaluator, "
            "any-worker or any-server");
  EXPECT_EQ(fault_refusal("kill:worker1@200"),
            "'kill:worker1@200': '200' must be a step, as in step200, or a time since training began, as in 10s or "
            "500ms");
  EXPECT_EQ(fault_refusal("kill:worker1@step"),
            "'kill:worker1@step': 'step' must be step and a number from 0, as in step200");
  EXPECT_EQ(fault_refusal("nan:worker1@step5+3s"), "'nan:worker1@step5+3s': a nan does not last; leave out +3s");
  EXPECT_EQ(fault_refusal("kill:worker1@10s+3s"), "'kill:worker1@10s+3s': a kill does not last; leave out +3s");
  EXPECT_EQ(fault_refusal("stop:worker1@10s"), "'stop:worker1@10s': how long is missing, as in 10s+3s");
  EXPECT_EQ(fault_refusal("cut:worker1@step5+3"),
            "'cut:worker1@step5+3': '3' must be a time of 1ms to 86400s, as in 10s, 1.5s or 200ms");
  EXPECT_EQ(fault_refusal("random:x"),
            "'random:x': 'x' must be a whole number from 0, as in random:7, and :any behind it if the run may end by "
            "them");
  EXPECT_THAT(fault_refusal("churn:0s"), HasSubstr("'0s' must be a time"));
  for (const char* text : {",",
                           "kill:worker1@5s,",
                           ",kill:worker1@5s",
                           "kill",
                           "kill:worker@5s",
                           "kill:worker-1@5s",
                           "kill:worker1x@5s",
                           "kill:evaluator0@5s",
                           "kill:any-standby@5s",
                           "kill:@5s",
                           "kill:worker1@",
                           "kill:worker1@step-1",
                           "kill:worker1@step1.5",
                           "kill:worker1@nans",
                           "kill:worker1@-1s",
                           "kill:worker1@1e99s",
                           "kill:worker1@0s",
                           "kill:worker1@5 s",
                           "stop:worker1@5s+",
                           "random:",
                           "random:-1",
                           "random::any",
                           "random:7:all",
                           "churn:",
                           "churn:4",
                           "Kill:worker1@5s"}) {
    EXPECT_THAT(fault_refusal(text), testing::StartsWith("'")) << text;
  }
}

TEST(FaultSchedule, IsCheckedAgainstThoseThatAreThere) {
  EXPECT_TRUE(parsed("kill:worker3@step999,cut:server1@1s+1s,kill:evaluator@1s,random:1").check(kScene).ok());
  EXPECT_EQ(parsed("kill:worker4@1s").check(kScene).message(), "kill:worker4@1s: there are workers 0 to 3");
  EXPECT_EQ(parsed("kill:server0@1s").check({}).message(), "kill:server0@1s: there are no servers");
  EXPECT_EQ(parsed("kill:any-server@1s").check({}).message(), "kill:any-server@1s: there are no servers");
  EXPECT_EQ(parsed("stop:worker1@1s+1s").check({}).message(), "stop:worker1@1s+1s: there is worker 0 alone");
  EXPECT_EQ(parsed("kill:standby0@1s").check(kScene).message(), "kill:standby0@1s: there are no standbys");
  EXPECT_EQ(parsed("kill:worker0@step1000").check(kScene).message(),
            "kill:worker0@step1000: a worker's steps are 0 to 999");
  EXPECT_EQ(parsed("cut:evaluator@1s+1s").check(kScene).message(),
            "cut:evaluator@1s+1s: the evaluator has no data links; it can be killed or stopped");
  EXPECT_EQ(parsed("reorder:evaluator@1s+1s").check(kScene).message(),
            "reorder:evaluator@1s+1s: the evaluator has no data links; it can be killed or stopped");
  EXPECT_THAT(parsed("churn:1s").check({}).message(), testing::StartsWith("churn:1s: needs two workers or more"));
  FaultScene scene = kScene;
  scene.no_links = "MPI has wires of its own";
  EXPECT_EQ(parsed("cut:worker0@1s+1s").check(scene).message(),
            "cut:worker0@1s+1s: there are no links to impair: MPI has wires of its own");
  scene.servers = 0;
  scene.no_servers = "they are in workers' processes";
  EXPECT_EQ(parsed("kill:server1@1s").check(scene).message(), "kill:server1@1s: they are in workers' processes");
}

TEST(FaultSchedule, DrawsAnybodyFromTheRunsSeed) {
  const FaultSchedule schedule = parsed("kill:any-worker@step5,kill:any-server@1s,stop:worker2@1s+1s");
  std::set<int> workers;
  for (std::uint64_t seed = 1; seed < 50; ++seed) {
    const std::vector<Fault> faults = schedule.draw(seed, kScene).faults;
    ASSERT_THAT(faults, SizeIs(3));
    workers.insert(faults[0].target.rank.value());
    EXPECT_LT(faults[1].target.rank.value(), 2);
    EXPECT_EQ(faults[2].to_string(), "stop:worker2@1s+1s");
    EXPECT_EQ(schedule.draw(seed, kScene).faults, faults);
  }
  EXPECT_THAT(workers, ElementsAre(0, 1, 2, 3));
}

TEST(FaultSchedule, DrawsAnyFaultsThatTheSceneAllows) {
  std::set<FaultKind> kinds;
  std::set<FaultRole> roles;
  std::set<std::size_t> counts;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = "random:" + std::to_string(seed) + ":any";
    const std::vector<Fault> faults = parsed(text).draw(1, kScene).faults;
    counts.insert(faults.size());
    for (const Fault& fault : faults) {
      kinds.insert(fault.kind);
      roles.insert(fault.target.role);
      EXPECT_TRUE(parsed(fault.to_string()).check(kScene).ok()) << fault.to_string();
      EXPECT_GE(*fault.step, 100);
      EXPECT_LT(*fault.step, 900);
      EXPECT_LE(fault.length, milliseconds(1800));
    }
    EXPECT_EQ(parsed(text).draw(2, kScene).faults, faults) << "they depend on their own seed alone";
  }
  EXPECT_THAT(kinds, SizeIs(3));
  EXPECT_THAT(roles, SizeIs(2)) << "workers and servers: there are no standbys, and the evaluator is spared";
  EXPECT_THAT(counts, ElementsAre(1, 2, 3));
}

// What scenes go on without, by the rule in words: so many workers, and one of a server and its standby.
void expect_outlasted(const std::vector<Fault>& faults, const FaultScene& scene) {
  std::set<int> killed_workers, ranks_without_a_server;
  for (const Fault& fault : faults) {
    if (fault.kind != FaultKind::kKill) {
      EXPECT_LE(fault.length, scene.timeout / 6) << fault.to_string() << ": three in a row are half of the timeout";
      continue;
    }
    if (fault.target.role == FaultRole::kWorker) {
      EXPECT_TRUE(killed_workers.insert(*fault.target.rank).second) << "it is gone already";
    } else {
      EXPECT_TRUE(scene.spares_servers) << fault.to_string();
      EXPECT_TRUE(ranks_without_a_server.insert(*fault.target.rank).second) << "its other one is gone already";
    }
  }
  EXPECT_LE(killed_workers.size(), static_cast<std::size_t>(scene.workers_to_spare));
}

TEST(FaultSchedule, DrawsRandomFaultsThatTheRunOutlasts) {
  FaultScene nobody = kScene;
  FaultScene workers = kScene;
  workers.workers_to_spare = 3;
  FaultScene all = workers;
  all.standbys = 2;
  all.spares_servers = true;
  std::map<const FaultScene*, int> kills;
  std::set<FaultKind> kinds;
  for (const FaultScene* scene : {&nobody, &workers, &all}) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      const std::vector<Fault> faults = parsed("random:" + std::to_string(seed)).draw(1, *scene).faults;
      expect_outlasted(faults, *scene);
      for (const Fault& fault : faults) {
        kinds.insert(fault.kind);
        EXPECT_TRUE(parsed(fault.to_string()).check(*scene).ok()) << fault.to_string();
        if (fault.kind == FaultKind::kKill) ++kills[scene];
      }
    }
  }
  EXPECT_EQ(kills[&nobody], 0);
  EXPECT_GT(kills[&workers], 50);
  EXPECT_GT(kills[&all], kills[&workers]) << "servers are killed, too";
  EXPECT_THAT(kinds, SizeIs(3));
}

TEST(FaultSchedule, CutsNoLinkThatCannotBe) {
  FaultScene scene = kScene;
  scene.no_links = "there are none";
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const Fault& fault : parsed("random:" + std::to_string(seed)).draw(1, scene).faults) {
      EXPECT_NE(fault.kind, FaultKind::kCut);
    }
  }
}

TEST(FaultSchedule, SaysWhetherLinksMayBeImpaired) {
  const auto may = [](const FaultSchedule& schedule) {
    std::vector<LinkFault> faults;
    for (std::size_t i = 0; i < kLinkFaults; ++i) {
      if (schedule.may(static_cast<LinkFault>(i))) faults.push_back(static_cast<LinkFault>(i));
    }
    return faults;
  };
  EXPECT_THAT(may(parsed("kill:worker0@1s,cut:worker0@1s+1s")), ElementsAre(LinkFault::kCut));
  EXPECT_THAT(may(parsed("delay:worker0@1s+1s,duplicate:worker0@1s+1s,reorder:worker0@1s+1s")),
              ElementsAre(LinkFault::kDelay, LinkFault::kDuplicate, LinkFault::kReorder));
  EXPECT_THAT(may(parsed("random:1")), ElementsAre(LinkFault::kCut));
  EXPECT_THAT(may(parsed("kill:worker0@1s,stop:worker0@1s+1s,churn:1s")), IsEmpty());
  EXPECT_THAT(may(FaultSchedule()), IsEmpty());
}

TEST(FaultSchedule, LeavesChurnToTheTrigger) {
  const DrawnFaults drawn = parsed("churn:4s,kill:worker0@1s").draw(1, kScene);
  EXPECT_THAT(drawn.churns, ElementsAre(std::chrono::seconds(4)));
  EXPECT_THAT(drawn.faults, SizeIs(1));
}

}  // namespace
}  // namespace syncopate::experiments
