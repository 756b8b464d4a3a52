// The goodput of whole runs, with and without losses, in real and in virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace syncopate::testing_support {
namespace {

using Flags = std::vector<std::string>;

// As results/README.md tells a reader of steps.csv to compute it.
double goodput_of_table(const Program& program, int workers) {
  const auto numbers = [&](const char* column) {
    std::vector<double> values;
    for (const std::string& cell : program.column("steps.csv", column)) {
      values.push_back(cell.empty() ? 0 : std::stod(cell));
    }
    return values;
  };
  const std::vector<double> worker = numbers("worker"), step = numbers("step"), end = numbers("end_s"),
                            total = numbers("total_us"), forward = numbers("forward_us"),
                            backward = numbers("backward_us"), optimizer = numbers("optimizer_us"),
                            dropped = numbers("dropped"), skipped = numbers("skipped");
  double computed = 0, begin = std::numeric_limits<double>::max(), last = 0;
  for (std::size_t row = 0; row < step.size(); ++row) {
    begin = std::min(begin, end[row] - total[row] / 1e6);
    last = std::max(last, end[row]);
    bool is_undone = false;
    for (std::size_t later = row + 1; later < step.size(); ++later) {
      is_undone = is_undone || (worker[later] == worker[row] && step[later] <= step[row]);
    }
    if (is_undone || skipped[row] == 1) continue;
    computed += (forward[row] + backward[row] + optimizer[row]) * (1 - dropped[row]) / 1e6;
  }
  return computed / (workers * (last - begin));
}

// What cells are rounded to, over a run of some tenths of a second.
constexpr double kRounded = 2e-3;

const Flags kGoodputJob{"--train-samples=8192", "--test-samples=256", "--batch-size=32"};
const Flags kInVirtualTime{"--cluster=simulated", "--compute=50ms", "--steps=60"};

struct GoodputCase {
  std::string name;
  int workers = 1;
  Flags flags;
  bool in_real_time = true;
};

std::ostream& operator<<(std::ostream& out, const GoodputCase& one) { return out << one.name; }

const auto kNameOfGoodputCase = [](const testing::TestParamInfo<GoodputCase>& info) { return info.param.name; };

const GoodputCase kGoodputCases[] = {
    {"Local", 1, {"--mode=local"}},
    {"Allreduce", 3, {"--mode=allreduce", "--workers=3"}},
    {"ElasticAllreduceThatLosesAWorker",
     3,
     {"--mode=allreduce", "--workers=3", "--elastic", "--fault=kill:worker1@step30"}},
    {"ElasticAllreduceWhoseWorkerComesBack",
     3,
     {"--mode=allreduce", "--workers=3", "--elastic", "--respawn=200ms", "--fault=kill:worker1@step30"}},
    {"PsAsyncThatLosesAWorker", 3, {"--mode=ps", "--workers=3", "--fault=kill:worker1@step30"}},
    {"PsSyncWithABackupWorker", 3, {"--mode=ps", "--consistency=sync", "--workers=3", "--backup-workers=1"}},
    {"PsSyncThatGoesBackToACheckpoint",
     2,
     {"--mode=ps", "--consistency=sync", "--workers=2", "--checkpoint-every=20", "--respawn=100ms",
      "--fault=kill:server0@step55"},
     false},  // a busy disk may not have the checkpoint by then
};

class Goodput : public testing::TestWithParam<GoodputCase> {};

TEST_P(Goodput, IsWhatAReaderOfTheStepsComesTo) {
  for (const Flags& time : {Flags{"--steps=60"}, kInVirtualTime}) {
    if (time != kInVirtualTime && !GetParam().in_real_time) continue;
    Program program(kGoodputJob + time + GetParam().flags);
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    const double goodput = program.summary()["goodput"];
    EXPECT_NEAR(goodput, goodput_of_table(program, GetParam().workers), kRounded);
    EXPECT_GT(goodput, 0);
    EXPECT_LE(goodput, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Goodput, testing::ValuesIn(kGoodputCases), kNameOfGoodputCase);

double simulated_goodput(const Flags& flags) {
  Program program(kGoodputJob + kInVirtualTime + flags);
  EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
  return program.summary()["goodput"];
}

// One of four workers is gone for the second half of the steps: an eighth of the time. Those that it had not reported
// yet, of 200 ms and one more, are a sixtieth of its own time.
TEST(SimulatedGoodput, LosesTheShareOfAWorkerThatIsGone) {
  const Flags elastic{"--mode=allreduce", "--workers=4", "--elastic"};
  const double whole = simulated_goodput(elastic),
               lost = simulated_goodput(elastic + Flags{"--fault=kill:worker1@step30"});
  EXPECT_GT(whole, 0.9);
  EXPECT_LT(lost / whole, 7.0 / 8);
  EXPECT_GT(lost / whole, 7.0 / 8 - 0.04);
}

// Servers go back from step 55 to that of the checkpoint at step 40, and all steps between are made twice.
TEST(SimulatedGoodput, LosesTheStepsSinceTheCheckpoint) {
  const Flags sync{"--mode=ps", "--consistency=sync", "--workers=2", "--checkpoint-every=20", "--respawn=1ms"};
  const double whole = simulated_goodput(sync), back = simulated_goodput(sync + Flags{"--fault=kill:server0@step55"});
  EXPECT_NEAR(back / whole, 60.0 / 75, 0.03);
}

// A worker of half the speed: the others wait for it under sync, and compute all the time under async.
TEST(SimulatedGoodput, IsHigherWhereNobodyWaitsForAStraggler) {
  const Flags slow{"--mode=ps", "--workers=4", "--straggler=1:2x"};
  EXPECT_NEAR(simulated_goodput(slow + Flags{"--consistency=sync"}), 0.5, 0.03);
  EXPECT_NEAR(simulated_goodput(slow + Flags{"--consistency=async"}), 3.5 / 4, 0.04) << "its delays are no progress";
}

// All that happened is in each run's summary.
TEST(SimulatedGoodput, IsComparedUnderManyKillsWithoutALineOfEach) {
  Program program(Flags{"compare", "--modes=allreduce,ps:async", "--workers=4", "--elastic", "--respawn=200ms",
                        "--fault=churn:300ms", "--repeat=1"} +
                  kGoodputJob + kInVirtualTime);
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const auto lines_with = [&](const std::string& text) {
    std::ptrdiff_t lines = 0;
    for (std::size_t at = end.err.find(text); at != std::string::npos; at = end.err.find(text, at + 1)) ++lines;
    return lines;
  };
  EXPECT_LE(lines_with("was killed by signal"), 12) << end.err;
  EXPECT_EQ(lines_with("more happened in this run: see events in its summary.json"), 2) << end.err;
}

TEST(SimulatedGoodput, OfAResumedRunIsThatOfWhatItDidItself) {
  const Flags flags{"--mode=allreduce", "--workers=2", "--checkpoint-every=40"};
  Program first(kGoodputJob + kInVirtualTime + flags);
  ASSERT_EQ(first.wait().exit_code, 0) << first.errors();
  Program second(kGoodputJob + kInVirtualTime + Flags{"--mode=allreduce", "--workers=2"} +
                 Flags{"--resume=" + (first.output() / "checkpoints").string()});
  ASSERT_EQ(second.wait().exit_code, 0) << second.errors();
  EXPECT_EQ(second.column("steps.csv", "step").front(), "40");
  EXPECT_NEAR(second.summary()["goodput"], goodput_of_table(second, 2), kRounded);
  EXPECT_NEAR(second.summary()["goodput"], first.summary()["goodput"], 0.02);
}

}  // namespace
}  // namespace syncopate::testing_support
