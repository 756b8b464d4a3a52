#include "experiments/lab/report/machine_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using Kind = MachineTrouble::Kind;

std::vector<Kind> kinds_of(const MachineLoad& load) {
  std::vector<Kind> kinds;
  for (const MachineTrouble& trouble : troubles_of(load)) kinds.push_back(trouble.kind);
  return kinds;
}

constexpr const char* kStat =
    "cpu  600 60 300 1000 50 0 40 30 0 0\n"
    "cpu0 100 10 100 500 20 5 15 10 0 0\n"
    "cpu1 200 20 100 300 20 0 10 15 0 0\n"
    "cpu12 300 30 100 200 10 0 15 5 0 0\n"
    "intr 17\n";

TEST(CoreTimes, AreOfTheCoresThatARunMayUse) {
  const std::optional<CoreTimes> times = core_times(kStat, {0, 12}, 100);
  ASSERT_TRUE(times);
  EXPECT_DOUBLE_EQ(times->busy, 2.30 + 4.45);
  EXPECT_DOUBLE_EQ(times->steal, 0.15);
}

TEST(CoreTimes, AreUnknownWhereACoreIsMissing) {
  EXPECT_EQ(core_times(kStat, {0, 3}, 100), std::nullopt);
  EXPECT_EQ(core_times("cpu0 1 2\n", {0}, 100), std::nullopt);
  EXPECT_EQ(core_times("", {}, 100), std::nullopt);
}

TEST(Pressure, IsTheTotalOfSome) {
  EXPECT_THAT(waiting_seconds("some avg10=97.39 avg60=77.72 avg300=27.90 total=2500000\nfull avg10=0.00 total=9\n"),
              Optional(2.5));
  EXPECT_EQ(waiting_seconds("full total=9\n"), std::nullopt);
  EXPECT_EQ(waiting_seconds("some total=\n"), std::nullopt);
}

TEST(Frequency, IsTheMeanOverCores) {
  EXPECT_THAT(mean_mhz("processor\t: 0\ncpu MHz\t\t: 2000.000\nprocessor\t: 1\ncpu MHz\t\t: 3000.5\n"),
              Optional(2500.25));
  EXPECT_EQ(mean_mhz("processor: 0\n"), std::nullopt);
}

TEST(MachineLoad, IsSharedOutBetweenTheRunOthersAndWhatWasStolen) {
  MachineReading before{.cores = 2, .busy = 100, .steal = 1, .own = 3, .waiting = 50, .load = 0.5};
  MachineReading after = before;
  after.at = before.at + std::chrono::seconds(10);
  after.busy = 116, after.steal = 1.4, after.own = 17, after.waiting = 55, after.load = 2.5;
  const MachineLoad load = load_between(before, after, 4);
  EXPECT_DOUBLE_EQ(load.seconds, 10);
  EXPECT_THAT(load.own, Optional(DoubleNear(0.7, 1e-9)));
  EXPECT_THAT(load.others, Optional(DoubleNear(0.1, 1e-9)));
  EXPECT_THAT(load.steal, Optional(DoubleNear(0.02, 1e-9)));
  EXPECT_THAT(load.waiting, Optional(DoubleNear(0.5, 1e-9)));
  EXPECT_THAT(to_text(load),
              "4 workers on 2 cores; of their time the run used 70 %, others 10 %, steal 2 %; load average "
              "0.5 before, 2.5 after");
}

TEST(MachineLoad, ComesToNoMoreThanTheWhole) {
  MachineReading before{.cores = 2, .busy = 0, .own = 0};
  MachineReading after = before;
  after.at = before.at + std::chrono::seconds(100);
  after.busy = 202, after.own = 119.1;  // counted in ticks, at other moments
  const MachineLoad load = load_between(before, after, 2);
  EXPECT_LE(*load.own + *load.others, 1);
  EXPECT_THAT(to_text(load), testing::HasSubstr("used 60 %, others 40 %"));
}

TEST(MachineLoad, LeavesOutWhatTheSystemDoesNotTell) {
  MachineReading before{.cores = 2}, after{.cores = 2};
  after.at += std::chrono::seconds(1);
  const MachineLoad load = load_between(before, after, 1);
  EXPECT_EQ(load.others, std::nullopt);
  EXPECT_EQ(load.steal, std::nullopt);
  EXPECT_THAT(troubles_of(load), IsEmpty());
}

TEST(MachineLoad, TellsAQuotaFromOtherProcesses) {
  MachineReading before{.cores = 4, .quota = 0.5, .throttling = Throttling{1000, 100}, .busy = 100, .own = 3};
  MachineReading after = before;
  after.at = before.at + std::chrono::seconds(10);
  after.busy = 106, after.own = 8, after.throttling = Throttling{1100, 190};
  const MachineLoad load = load_between(before, after, 1);
  EXPECT_DOUBLE_EQ(load.cores, 0.5);
  EXPECT_THAT(load.own, Optional(DoubleNear(1, 1e-9)));
  EXPECT_THAT(load.others, Optional(DoubleNear(0.025, 1e-9))) << "one of 40 seconds";
  EXPECT_THAT(load.throttled, Optional(DoubleNear(0.9, 1e-9)));
  EXPECT_THAT(kinds_of(load), ElementsAre(Kind::kThrottled, Kind::kMoreWorkersThanCores));
  EXPECT_THAT(troubles_of(load).front().text,
              HasSubstr("the CPU quota of 0.5 cores (cgroup) stopped the run's processes in 90 % of its periods"));
  EXPECT_THAT(to_text(load), HasSubstr("; a CPU quota gives 0.5, throttled in 90 % of its periods"));
  after.quota = 8;
  EXPECT_DOUBLE_EQ(load_between(before, after, 1).cores, 4) << "it has no effect";
}

TEST(MachineTroubles, AreOthersStealAndMoreWorkersThanCores) {
  const MachineLoad quiet{.seconds = 10, .cores = 2, .workers = 2, .own = 0.9, .others = 0.04, .steal = 0.009};
  EXPECT_THAT(troubles_of(quiet), IsEmpty());
  MachineLoad load = quiet;
  load.others = 0.06;
  EXPECT_THAT(kinds_of(load), ElementsAre(Kind::kOthers));
  load.steal = 0.011;
  load.workers = 16;
  EXPECT_THAT(kinds_of(load), ElementsAre(Kind::kOthers, Kind::kSteal, Kind::kMoreWorkersThanCores));
  EXPECT_THAT(troubles_of(load).back().text,
              AllOf(HasSubstr("16 workers shared 2 cores"), HasSubstr("--cluster=simulated")));
}

TEST(MachineTroubles, AreNoneWhereManyWorkersLeaveTheCoresIdle) {
  EXPECT_THAT(troubles_of({.seconds = 10, .cores = 2, .workers = 16, .own = 0.3, .others = 0.01, .steal = 0}),
              IsEmpty());
}

TEST(Machine, CanBeReadHere) {
  const MachineReading before = read_machine();
  EXPECT_GT(before.cores, 0);
  volatile double sink = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < until) sink = sink + 1;
  const MachineLoad load = load_between(before, read_machine(), 1);
  EXPECT_GT(load.seconds, 0.19);
  EXPECT_GT(load.own.value_or(0), 0);
  EXPECT_LE(load.own.value_or(0), 1);
}

}  // namespace
}  // namespace syncopate::experiments
