// Asynchronous gossip by the real program: it learns what gossip in step does, over every wire and in virtual time, and
// tells what it did.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing_support::lines_of;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::text_of;
using Flags = std::vector<std::string>;

Flags small_gossip(const Flags& mode) {
  Flags flags{"--mode=allreduce",     "--model=mlp:784-32-10", "--batch-size=16",
              "--train-samples=8192", "--test-samples=1000",   "--warmup-steps=0"};
  flags.insert(flags.end(), mode.begin(), mode.end());
  return flags;
}

struct Learnt {
  double accuracy = 0, seconds = 0;
};

Learnt learnt_by(const Flags& mode) {
  Program program(small_gossip(mode));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(program.summary()["used_samples"], 3 * 8192);
  return {program.summary()["final_test_accuracy"].get<double>(), program.summary()["training_seconds"].get<double>()};
}

TEST(AsyncGossipRun, LearnsAsMuchAsGossipInStep) {
  const double in_step = learnt_by({"--workers=4", "--gossip"}).accuracy;
  EXPECT_GT(in_step, 0.7);
  EXPECT_GT(learnt_by({"--workers=4", "--gossip=async"}).accuracy, in_step - 0.1);
}

Flags simulated_gossip(const Flags& mode) {
  Flags flags{"--cluster=simulated", "--compute=5ms"};
  flags.insert(flags.end(), mode.begin(), mode.end());
  return flags;
}

TEST(SimulatedAsyncGossip, LearnsAsMuchAsGossipInStep) {
  const double in_step = learnt_by(simulated_gossip({"--workers=4", "--gossip"})).accuracy;
  EXPECT_GT(in_step, 0.7);
  for (const Flags& how :
       {Flags{"--workers=4"}, Flags{"--workers=4", "--sync-every=8"}, Flags{"--workers=4", "--straggler=1:+20"}}) {
    Flags flags = simulated_gossip(how);
    flags.push_back("--gossip=async");
    EXPECT_GT(learnt_by(flags).accuracy, in_step - 0.03) << how.back();
  }
}

// One of eight takes four times as long. In step it is waited for; asynchronously the eight are as fast as 7.25, less
// what the slow one's last step takes.
TEST(SimulatedAsyncGossip, IsAsFastAsAllTogetherWhereOneIsSlow) {
  for (const char* slow : {"--straggler=2:4x", "--straggler=3:4x"}) {
    const Learnt in_step = learnt_by(simulated_gossip({"--workers=8", "--gossip", slow}));
    const Learnt async = learnt_by(simulated_gossip({"--workers=8", "--gossip=async", slow}));
    EXPECT_GT(in_step.seconds / async.seconds, 3.5) << slow;
    EXPECT_GT(async.accuracy, in_step.accuracy - 0.03) << slow;
  }
}

TEST(SimulatedAsyncGossip, RepeatsExactly) {
  const Flags flags = small_gossip(simulated_gossip(
      {"--workers=5", "--gossip=async", "--straggler=all:p0.3:+10", "--steps=40", "--optimizer=momentum"}));
  Program first(flags), second(flags);
  ASSERT_EQ(first.wait().exit_code, 0) << first.errors();
  ASSERT_EQ(second.wait().exit_code, 0) << second.errors();
  EXPECT_THAT(first.weights(), Not(IsEmpty()));
  EXPECT_EQ(first.weights(), second.weights());
  EXPECT_EQ(first.steps_csv(), second.steps_csv());
}

TEST(AsyncGossipRun, GoesOverEveryWireWithAnyNumberOfWorkers) {
  for (const Flags& wire : {Flags{"--workers=1"}, Flags{"--workers=2", "--transport=ipc"},
                            Flags{"--workers=3", "--transport=tcp"}, Flags{"--workers=4", "--transport=sockets"},
                            Flags{"--workers=3", "--shape=1gbit"}, Flags{"--workers=2", "--optimizer=momentum"}}) {
    Flags flags = small_gossip(wire);
    flags.insert(flags.end(), {"--gossip=async", "--steps=60"});
    Program program(flags);
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << wire.back() << ": " << end.err;
    EXPECT_THAT(program.weights(), Not(IsEmpty()));
    EXPECT_EQ(program.summary()["outcome"], "completed");
  }
}

// An active worker's gradient misses the one average that it has asked for; what a passive one's misses depends on
// time.
TEST(AsyncGossipRun, RecordsTheAveragesThatAGradientMissed) {
  Program program(small_gossip({"--workers=2", "--gossip=async", "--work=quota", "--steps=30"}));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, ContainsRegex("\n  staleness +[0-9.]+ mean, [0-9.]+ p95, [0-9]+ max averages"));
  EXPECT_THAT(end.out, HasSubstr("allreduce ring gossip-async:1, 2 workers, each with a quota, shm"));
  const std::vector<std::string> rows = lines_of(program.steps_csv());
  const auto fields = [](const std::string& row) {
    std::vector<std::string> all(1);
    for (const char c : row) {
      if (c == ',') {
        all.emplace_back();
      } else {
        all.back() += c;
      }
    }
    return all;
  };
  const std::vector<std::string> names = fields(rows[0]);
  const auto at = [&](const char* name) {
    return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  };
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::vector<std::string> row = fields(rows[i]);
    if (row[at("worker")] != "0") continue;
    EXPECT_EQ(row[at("staleness_max")], row[at("step")] == "0" ? "0" : "1") << rows[i];
  }
}

TEST(AsyncGossipRun, ComparesWithOtherModes) {
  testing_support::TemporaryFolder folder;
  const std::string output = (folder.path() / "compared").string();
  const ProgramEnd end = testing_support::run_program(
      {"compare", "--modes=allreduce:gossip,allreduce:gossip-async:2,ps:async", "--model=mlp:784-32-10",
       "--batch-size=16", "--train-samples=4096", "--test-samples=512", "--workers=2", "--steps=40", "--repeat=1",
       "--output=" + output});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("allreduce:gossip-async:2"));
}

}  // namespace
}  // namespace syncopate::experiments
