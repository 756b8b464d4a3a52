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
using testing_support::operator+;

// The timeout of a run. A process that is silent for half of it is noticed.
inline constexpr int kTimeoutSeconds = 6 * testing_support::kSlowness;
// From a failure to the end of the program, its processes included.
inline constexpr Duration kDeadline = 2 * std::chrono::seconds(kTimeoutSeconds);
inline constexpr std::size_t kParameters = 784 * 64 + 64 + 64 * 10 + 10;

inline constexpr const char* kWithoutEnd = "--steps=1000000000";

// Where a run of a test takes place: on this machine, in processes to which the test itself does something, or in
// virtual time, where --fault does it in a certain step.
enum class Place { kHere, kVirtualTime };

// What happens to a process in virtual time: once it has sent heartbeats, and long before the end of a run of
// kVirtualSteps.
inline constexpr int kStruckStep = 150;
inline constexpr const char* kVirtualSteps = "--steps=600";
inline const Flags kInVirtualTime{"--cluster=simulated", "--compute=20ms"};
inline std::string fault_flag(const std::string& kind, const std::string& role, int rank, int step = kStruckStep) {
  return fmt::format("--fault={}:{}{}@step{}{}", kind, role, rank, step, kind == "kill" ? "" : "+86400s");
}

// Trains a small model.
inline Flags training(const Flags& mode, const std::string& amount = kWithoutEnd,
                      int timeout_seconds = kTimeoutSeconds) {
  Flags flags{"--batch-size=32", "--train-samples=20000", "--test-samples=500", amount,
              fmt::format("--timeout={}s", timeout_seconds)};
  const auto names_model = [](const std::string& flag) { return flag.starts_with("--model="); };
  if (std::ranges::none_of(mode, names_model)) flags.emplace_back("--model=mlp:784-64-10");
  flags.insert(flags.end(), mode.begin(), mode.end());
  return flags;
}

inline std::string name_of_process(const std::string& role, int rank) {
  return role == "evaluator" ? role : fmt::format("{} {}", role, rank);
}

// How a verdict names a process: role and rank, host and process, what it did, in which step if it makes any, when it
// was last heard.
inline std::string naming_at(const std::string& name, const std::string& place) {
  return fmt::format("{} \\(host {}; [a-z ]+( at step [0-9]+)?, last heard [0-9.]+ s ago\\) ", name, place);
}
inline std::string naming(const std::string& name, pid_t pid) {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  return naming_at(name, fmt::format("{}, pid {}", host, pid));
}
inline std::string naming_in_virtual_time(const std::string& name) { return naming_at(name, "simulated"); }

// The run ends in time with `code` and with one verdict line, which begins with `verdict` (a regular expression) and
// stands in the summary, too; what was done to it by --fault, and warnings of a stall, come before. What was recorded
// is kept, and nothing of the run is left.
inline void expect_verdict(Program& program, ExitCode code, const std::string& verdict, const std::string& fault = "") {
  const ProgramEnd end = program.wait(kDeadline);
  EXPECT_EQ(end.exit_code, static_cast<int>(code)) << end.out << end.err;
  EXPECT_THAT(program.processes(), testing::IsEmpty());
  EXPECT_THAT(end.err, testing::MatchesRegex(fault + "(stalled for [^\n]*\n)*run_experiment: " + verdict + "[^\n]*\n"));
  EXPECT_THAT(program.summary().value("outcome", ""), testing::MatchesRegex(verdict + ".*"));
  EXPECT_GT(program.summary().value("total_steps", 0), 0);
}

}  // namespace syncopate::experiments
