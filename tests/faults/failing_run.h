// What the tests of failures share: a run that trains until something happens to it, and what must be true of its end.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "experiments/cluster/exit_code.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {

using Flags = std::vector<std::string>;
using testing_support::Program;
using testing_support::ProgramEnd;

// The timeout of a run. A process that is silent for half of it is noticed.
inline constexpr int kTimeoutSeconds = 6 * testing_support::kSlowness;
// From a failure to the end of the program, its processes included.
inline constexpr Duration kDeadline = 2 * std::chrono::seconds(kTimeoutSeconds);
inline constexpr std::size_t kParameters = 784 * 64 + 64 + 64 * 10 + 10;

inline constexpr const char* kWithoutEnd = "--steps=1000000000";

// Trains a small model.
inline Flags training(const Flags& mode, const std::string& amount = kWithoutEnd,
                      int timeout_seconds = kTimeoutSeconds) {
  Flags flags{"--model=mlp:784-64-10",
              "--batch-size=32",
              "--train-samples=20000",
              "--test-samples=500",
              amount,
              fmt::format("--timeout={}", timeout_seconds)};
  flags.insert(flags.end(), mode.begin(), mode.end());
  return flags;
}

inline std::string name_of_process(const std::string& role, int rank) {
  return role == "evaluator" ? role : fmt::format("{} {}", role, rank);
}

// How a verdict names a process: role and rank, host and process, what it did in which step, when it was last heard.
inline std::string naming(const std::string& name, pid_t pid) {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  return fmt::format("{} \\(host {}, pid {}; [a-z ]+ at step [0-9]+, last heard [0-9.]+ s ago\\) ", name, host, pid);
}

// The run ends in time with `code` and with one verdict line, which begins with `verdict` (a regular expression) and
// stands in the summary, too; warnings of a stall may come before. What was recorded is kept, and nothing of the run is
// left.
inline void expect_verdict(Program& program, ExitCode code, const std::string& verdict) {
  const ProgramEnd end = program.wait(kDeadline);
  EXPECT_EQ(end.exit_code, static_cast<int>(code)) << end.out << end.err;
  EXPECT_THAT(program.processes(), testing::IsEmpty());
  EXPECT_THAT(end.err, testing::MatchesRegex("(stalled for [^\n]*\n)*run_experiment: " + verdict + "[^\n]*\n"));
  EXPECT_THAT(program.summary().value("outcome", ""), testing::MatchesRegex(verdict + ".*"));
  EXPECT_GT(program.summary().value("total_steps", 0), 0);
}

}  // namespace syncopate::experiments
