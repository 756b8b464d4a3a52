// Asynchronous gossip by the real program: it learns what gossip in step does, over every wire, and tells what it did.
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

double accuracy_of(const Flags& mode) {
  Program program(small_gossip(mode));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(program.summary()["used_samples"], 3 * 8192);
  return program.summary()["final_test_accuracy"].get<double>();
}

TEST(AsyncGossipRun, LearnsAsMuchAsGossipInStep) {
  const double in_step = accuracy_of({"--workers=4", "--gossip"});
  EXPECT_GT(in_step, 0.7);
  EXPECT_GT(accuracy_of({"--workers=4", "--gossip=async"}), in_step - 0.1);
  EXPECT_GT(accuracy_of({"--workers=4", "--gossip=async", "--sync-every=8"}), in_step - 0.1);
  EXPECT_GT(accuracy_of({"--workers=4", "--gossip=async", "--straggler=1:+20"}), in_step - 0.1);
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
  const ProgramEnd end =
      testing_support::run_program({"compare", "--modes=allreduce:gossip,allreduce:gossip-async:2,ps:async",
                                    "--model=mlp:784-32-10", "--batch-size=16", "--train-samples=4096",
                                    "--test-samples=512", "--workers=2", "--steps=40", "--output=" + output});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("allreduce:gossip-async:2"));
}

}  // namespace
}  // namespace syncopate::experiments
