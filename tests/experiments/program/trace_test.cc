// Traces of whole runs, on real hosts and in virtual time: what every viewer depends on, and all that the traced steps
// must have left.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/trace_check.h"

namespace syncopate::testing_support {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using Flags = std::vector<std::string>;

const Flags kTracedSmall{"--steps=12",         "--model=mlp:784-64-10", "--train-samples=2048",
                         "--test-samples=256", "--batch-size=32",       "--timeout=60"};
const Flags kTracedInVirtualTime{"--cluster=simulated", "--compute=2ms"};

json trace_of(const Program& program) { return json::parse(text_of(program.output() / "trace.json")); }

// The steps of a worker of which there is an event with this name.
std::set<int> steps_of(const json& trace, int process, const std::string& name) {
  std::set<int> steps;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["pid"] == process && event["name"].get<std::string>().starts_with(name)) {
      steps.insert(event["args"]["step"].get<int>());
    }
  }
  return steps;
}

// The number in the list of processes of the one with this name.
int number_of(const CheckedTrace& checked, const std::string& process) {
  return static_cast<int>(std::ranges::find(checked.processes, process) - checked.processes.begin()) + 1;
}

struct TracedCase {
  std::string name;
  Flags flags;
  bool is_ps = false;
};

std::ostream& operator<<(std::ostream& out, const TracedCase& one) { return out << one.name; }

class TracedRun : public testing::TestWithParam<TracedCase> {
 protected:
  static constexpr int kWorkers = 2;
};

TEST_P(TracedRun, ShowsItsStepsAndWhatWentBetweenProcesses) {
  Program program(kTracedSmall + GetParam().flags + Flags{"--workers=2", "--trace=3:7"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << program.errors();
  EXPECT_THAT(end.out, HasSubstr("trace.json: steps 3 to 7"));
  const json trace = trace_of(program);
  const CheckedTrace checked = check_trace(trace);
  EXPECT_THAT(checked.faults, IsEmpty());
  EXPECT_EQ(trace["otherData"]["dropped"], 0);
  EXPECT_EQ(trace["otherData"]["unjoined"], 0);
  EXPECT_EQ(program.summary()["trace"]["events"], trace["otherData"]["events"]);
  const std::set<int> traced{3, 4, 5, 6, 7};
  for (int worker = 0; worker < kWorkers; ++worker) {
    const int process = number_of(checked, fmt::format("worker {}", worker));
    for (const char* phase : {"step", "data", "forward", "backward", "synchronise"}) {
      EXPECT_EQ(steps_of(trace, process, phase), traced) << phase << " of worker " << worker;
    }
  }
  if (GetParam().is_ps) {
    // Each push leaves four: sending it, dealing with it, its answer and taking that.
    EXPECT_GT(checked.arrows, 0);
    EXPECT_EQ(checked.steps_of_arrows, checked.arrows);
    EXPECT_EQ(checked.slices.at("message"), 2 * checked.arrows);
    EXPECT_EQ(checked.counters.at("staleness"), checked.arrows);
    EXPECT_THAT(checked.processes, Contains("server 1"));
  } else {
    EXPECT_EQ(checked.arrows, 0);
    EXPECT_GT(checked.slices.at("collective"), 0);
    // Each part leaves two: sending and receiving it.
    EXPECT_EQ(checked.slices.at("part"), 2 * checked.slices.at("message"));
  }
  EXPECT_GT(checked.counters.at("out"), 0);
  EXPECT_GT(checked.counters.at("in"), 0);
}

const Flags kTracedRing{"--mode=allreduce", "--collective=ring"};
const Flags kTracedSync{"--mode=ps", "--consistency=sync", "--servers=2"};
const Flags kTracedAsync{"--mode=ps", "--consistency=async", "--servers=2", "--work=quota"};
INSTANTIATE_TEST_SUITE_P(Of, TracedRun,
                         testing::Values(TracedCase{"Ring", kTracedRing}, TracedCase{"PsSync", kTracedSync, true},
                                         TracedCase{"PsAsync", kTracedAsync, true},
                                         TracedCase{"RingInVirtualTime", kTracedRing + kTracedInVirtualTime},
                                         TracedCase{"MeansOfWeights", kTracedRing + Flags{"--sync-every=2"}},
                                         TracedCase{"Gossip", kTracedRing + Flags{"--gossip"}},
                                         TracedCase{"PsSyncInVirtualTime", kTracedSync + kTracedInVirtualTime, true},
                                         TracedCase{"PsAsyncInVirtualTime", kTracedAsync + kTracedInVirtualTime, true},
                                         TracedCase{"PsOfSeveralShards",
                                                    kTracedSync + Flags{"--shards-per-server=2", "--chunk-bytes=16384"},
                                                    true}),
                         [](const auto& info) { return info.param.name; });

TEST(Trace, IsOfTheStepsBehindTheWarmUpAndOfAShortRunsLastOnes) {
  Program program(kTracedSmall + kTracedInVirtualTime + Flags{"--mode=ps", "--trace"});
  ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
  const json summary = program.summary();
  EXPECT_EQ(summary["trace"]["first_step"], 0);
  Program second(kTracedSmall + kTracedInVirtualTime + Flags{"--mode=ps", "--trace=4", "--warmup-steps=5"});
  ASSERT_EQ(second.wait().exit_code, 0) << second.errors();
  EXPECT_EQ(steps_of(trace_of(second), 2, "step"), (std::set<int>{5, 6, 7, 8}));
}

TEST(Trace, ChangesNothingThatARunComesTo) {
  const Flags flags = kTracedSmall + kTracedInVirtualTime + kTracedSync;
  Program traced(flags + Flags{"--trace=0:11"}), untraced(flags);
  ASSERT_EQ(traced.wait().exit_code, 0) << traced.errors();
  ASSERT_EQ(untraced.wait().exit_code, 0) << untraced.errors();
  EXPECT_EQ(traced.steps_csv(), untraced.steps_csv());
  EXPECT_EQ(traced.weights(), untraced.weights());
}

TEST(Trace, OfASimulatedRunIsTheSameEachTime) {
  const Flags flags = kTracedSmall + kTracedInVirtualTime + kTracedAsync + Flags{"--trace"};
  Program one(flags), other(flags);
  ASSERT_EQ(one.wait().exit_code, 0) << one.errors();
  ASSERT_EQ(other.wait().exit_code, 0) << other.errors();
  EXPECT_EQ(trace_of(one)["traceEvents"], trace_of(other)["traceEvents"]);
}

TEST(Trace, IsThereOfARunThatAFaultHasEnded) {
  Program program(kTracedSmall + Flags{"--mode=allreduce", "--cluster=simulated", "--compute=2ms", "--workers=3",
                                       "--collective=ring", "--trace=0:11", "--fault=kill:worker1@step6"});
  EXPECT_NE(program.wait().exit_code, 0);
  const json trace = trace_of(program);
  const CheckedTrace checked = check_trace(trace);
  EXPECT_THAT(checked.faults, IsEmpty());
  // What the killed worker had recorded is lost.
  EXPECT_EQ(checked.processes, (std::vector<std::string>{"worker 0", "worker 2"}));
  EXPECT_THAT(steps_of(trace, 1, "step"), Contains(5));
}

TEST(Trace, NamesStepsThatTheRunHas) {
  const ProgramEnd end = run_program(kTracedSmall + Flags{"--trace=12:13"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("--trace=12:13: the run's steps are 0 to 11; name some of these"));
}

}  // namespace
}  // namespace syncopate::testing_support
