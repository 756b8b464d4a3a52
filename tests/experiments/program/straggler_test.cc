// Workers that are made slow: who is slowed, by how much, and who waits for whom. Of real runs only what must be so on
// a machine of any speed is asked for: a wait lasts at least as long as it should. The longest are made in virtual
// time.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tests/support/run_program.h"
#include "worker/stragglers.h"

namespace syncopate::experiments {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;
using testing_support::lines_of;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::operator+;
using Flags = std::vector<std::string>;

const Flags kSlowInVirtualTime{"--cluster=simulated", "--compute=1ms"};

Flags small_straggling(const Flags& mode) {
  Flags flags{"--model=mlp:784-32-10", "--batch-size=16", "--train-samples=4096", "--test-samples=512",
              "--warmup-steps=0"};
  flags.insert(flags.end(), mode.begin(), mode.end());
  return flags;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream rest(line);
  for (std::string field; std::getline(rest, field, ',');) fields.push_back(field);
  return fields;
}

// A column of steps.csv for one worker, by step.
std::vector<double> column(const Program& program, int worker, const std::string& name) {
  const std::vector<std::string> lines = lines_of(program.steps_csv());
  if (lines.empty()) return {};
  const std::vector<std::string> names = fields_of(lines.front());
  const auto index = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
  std::vector<double> values;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> fields = fields_of(lines[i]);
    if (index < fields.size() && fields[1] == std::to_string(worker)) values.push_back(std::stod(fields[index]));
  }
  return values;
}

double sum(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

class StragglerIn : public testing::TestWithParam<Flags> {};

INSTANTIATE_TEST_SUITE_P(Mode, StragglerIn,
                         testing::Values(Flags{"--mode=allreduce", "--workers=2"},
                                         Flags{"--mode=ps", "--workers=2", "--consistency=sync"},
                                         Flags{"--mode=ps", "--workers=2", "--work=quota", "--consistency=async"}),
                         [](const auto& flags) {
                           const std::string& last = flags.param.back();
                           return last.starts_with("--consistency=") ? last.substr(last.find('=') + 1) : "allreduce";
                         });

TEST_P(StragglerIn, ComputesAsManyTimesAsLongAndNobodyElseDoes) {
  Flags flags = small_straggling(GetParam());
  flags.insert(flags.end(), {"--straggler=1:4x", "--steps=40"});
  Program program(flags);
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr(", straggler 1:4x: mlp"));
  EXPECT_THAT(column(program, 0, "straggle_us"), Each(0));
  const std::vector<double> delays = column(program, 1, "straggle_us");
  EXPECT_THAT(delays, SizeIs(40));
  // 3 times its compute, but for a moment between the last catch-up and the record.
  EXPECT_GT(sum(delays), 2 * (sum(column(program, 1, "forward_us")) + sum(column(program, 1, "backward_us"))));
  const nlohmann::json summary = program.summary();
  EXPECT_EQ(summary["straggler"], "1:4x");
  ASSERT_THAT(summary["stragglers"], SizeIs(1));
  EXPECT_EQ(summary["stragglers"][0]["worker"], 1);
  EXPECT_GT(summary["stragglers"][0]["slowdown"], 3);
}

// 30 steps of 20 ms or more, beside which others' take a millisecond.
TEST(StragglerInStep, HoldsEverybodyUp) {
  for (const Flags& mode : {Flags{"--mode=ps", "--consistency=sync"}, Flags{"--mode=allreduce"}}) {
    Flags flags = small_straggling(mode);
    flags.insert(flags.end(), {"--workers=2", "--straggler=1:+20", "--steps=30"});
    Program program(flags);
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_GT(sum(column(program, 1, "straggle_us")), 30 * 20000 - 10);
    EXPECT_GT(sum(column(program, 0, "exposed_wait_us")), 30 * 20000 / 2);
  }
}

TEST(StragglerOutOfStep, HoldsNobodyUp) {
  Program program(small_straggling({"--mode=ps", "--consistency=async", "--work=quota", "--workers=2",
                                    "--straggler=1:+20", "--steps=30"}) +
                  kSlowInVirtualTime);
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_LT(column(program, 0, "end_s").back(), column(program, 1, "end_s").back() / 2);
}

// The same job by workers that gossip: whoever is drawn with a slow one waits for it in step, and nobody does
// asynchronously, be the slow one active or passive. Its 200 batches' delays alone, in step, take 4 s and more.
TEST(StragglerAmongThoseThatGossip, HoldsOthersUpInStepAndNobodyAsynchronously) {
  const auto seconds_of = [](const Flags& mode) {
    Flags flags = small_straggling(mode);
    flags.insert(flags.end(), {"--mode=allreduce", "--workers=4", "--steps=200"});
    Program program(flags + kSlowInVirtualTime);
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    EXPECT_EQ(program.summary()["used_samples"], 4 * 200 * 16);
    EXPECT_GT(program.summary()["final_test_accuracy"], 0.3);
    return program.summary()["training_seconds"].get<double>();
  };
  const double in_step = seconds_of({"--gossip", "--straggler=3:+20"});
  EXPECT_GT(in_step, 4);
  for (const char* slow : {"--straggler=3:+20", "--straggler=2:+20"}) {
    EXPECT_LT(seconds_of({"--gossip=async", slow}), in_step / 2) << slow;
  }
}

class SharedWorkUnder : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Of, SharedWorkUnder,
                         testing::Values("--consistency=async", "--consistency=softsync:1", "--consistency=easgd:4",
                                         "--gossip=async"));

// A straggler trains fewer batches then, the other more, and both end together: within two of the straggler's steps.
void expect_all_is_trained_once(const std::string& how, const Flags& place) {
  Program program(small_straggling({how.starts_with("--gossip") ? "--mode=allreduce" : "--mode=ps", how, "--workers=2",
                                    "--straggler=1:+20", "--epochs=3"}) +
                  place);
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  std::vector<double> positions = column(program, 0, "position");
  const std::vector<double> slow = column(program, 1, "position");
  EXPECT_GT(positions.size(), slow.size());
  EXPECT_FALSE(slow.empty());
  positions.insert(positions.end(), slow.begin(), slow.end());
  std::ranges::sort(positions);
  ASSERT_EQ(positions.size(), 3 * 256u);
  for (std::size_t i = 0; i < positions.size(); ++i) ASSERT_EQ(positions[i], static_cast<double>(i));
  EXPECT_EQ(program.summary()["used_samples"], 3 * 4096);
  const double apart = std::abs(column(program, 0, "end_s").back() - column(program, 1, "end_s").back());
  const std::vector<double> steps = column(program, 1, "total_us");
  EXPECT_LT(apart, 2e-6 * *std::ranges::max_element(steps) + 0.02);
}

TEST_P(SharedWorkUnder, IsTrainedOnceWhoeverIsSlow) { expect_all_is_trained_once(GetParam(), {}); }

// The other waits for the straggler, as often as the bound has it.
TEST(SharedWorkUnderABound, IsTrainedOnceWhoeverIsSlow) {
  expect_all_is_trained_once("--consistency=bounded:8", kSlowInVirtualTime);
}

// Training ends with the update that completes as many samples as the job has; the slow worker does not make up for
// what was dropped of it.
TEST(BackupWorkers, EndTheTrainingForAllAfterTheJobsUpdates) {
  Program program(small_straggling(
      {"--mode=ps", "--consistency=sync", "--backup-workers=1", "--workers=3", "--straggler=2:+20", "--steps=80"}));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const std::int64_t updates = 80 * 3 / 2;
  EXPECT_THAT(column(program, 0, "position"), SizeIs(updates));
  EXPECT_THAT(column(program, 1, "position"), SizeIs(updates));
  EXPECT_LT(column(program, 2, "position").size(), static_cast<std::size_t>(updates) / 2);
  const double used = program.summary()["used_samples"];
  EXPECT_NEAR(used, updates * 2 * 16, 0.1 * updates * 16);
  EXPECT_LT(used, program.summary()["total_samples"].get<double>());
}

// All steps of the other are over before its warm-up is, so that nobody shares a window with it.
TEST(StragglerOutOfStep, LeavesTheWholeJobsThroughputToBeMeasured) {
  Program program({"--model=mlp:784-32-10", "--batch-size=16", "--train-samples=4096", "--test-samples=512",
                   "--mode=ps", "--consistency=async", "--work=quota", "--workers=2", "--straggler=1:+20",
                   "--warmup-steps=5", "--steps=10"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json summary = program.summary();
  const double samples = summary["used_samples"], seconds = summary["training_seconds"];
  EXPECT_NEAR(summary["samples_per_second"], samples / seconds, 1e-6 * samples / seconds);
  EXPECT_GT(seconds, 0.2) << "the straggler's ten steps";
}

TEST(StragglerAlone, IsSlowAsDrawnFromTheSeed) {
  const std::string spec = "all:exp:2,0:p0.5:+3";
  Program program(small_straggling({"--mode=local", "--straggler=" + spec, "--steps=40", "--seed=5"}));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const worker::Stragglers stragglers = *worker::Stragglers::parse(spec);
  const std::vector<double> delays = column(program, 0, "straggle_us");
  ASSERT_THAT(delays, SizeIs(40));
  // Whatever a wait lasted too long is taken off the next.
  double drawn = 0, waited = 0;
  for (std::size_t step = 0; step < delays.size(); ++step) {
    drawn += microseconds(stragglers.at(5, 0, static_cast<std::int64_t>(step)).extra);
    waited += delays[step];
    EXPECT_GE(waited, drawn - 10) << "step " << step;
  }
}

TEST(Straggler, OfHalfTheTimeoutIsNotTakenForHung) {
  Program program(small_straggling(
      {"--mode=ps", "--consistency=sync", "--workers=2", "--straggler=1:+1500", "--timeout=3", "--steps=3"}));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
}

TEST(Straggler, EndsItsDelayWhenTheRunIsToldToStop) {
  Program program(small_straggling({"--mode=local", "--timeout=3600", "--straggler=0:+1800000", "--steps=3"}));
  program.wait_until("the worker straggles", [&] {
    return testing_support::text_of(program.output() / "logs" / "worker-0.log").find("training") != std::string::npos;
  });
  program.signal(SIGINT);
  EXPECT_EQ(program.wait().exit_code, 130);
}

}  // namespace
}  // namespace syncopate::experiments
