#include "tests/support/faulty_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace syncopate::faults {
namespace {

namespace fs = std::filesystem;
using experiments::ExitCode;

// Names of shared memory that some process has mapped or open.
std::set<std::string> shared_memory_in_use() {
  std::set<std::string> names;
  std::error_code ignored;  // processes come and go meanwhile
  for (const auto& process : fs::directory_iterator("/proc", ignored)) {
    std::ifstream maps(process.path() / "maps");
    for (std::string line; std::getline(maps, line);) {
      if (const std::size_t at = line.find("/dev/shm/"); at != std::string::npos) names.insert(line.substr(at));
    }
  }
  return names;
}

}  // namespace

void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }

Flags small_run(const Flags& mode, int steps, int timeout_seconds) {
  Flags flags{"--model=mlp:784-32-10",
              "--batch-size=16",
              "--train-samples=4000",
              "--test-samples=200",
              "--straggler=all:+2",
              "--warmup-steps=0",
              fmt::format("--steps={}", steps),
              fmt::format("--timeout={}s", timeout_seconds)};
  flags.insert(flags.end(), mode.begin(), mode.end());
  return flags;
}

Remains::Remains() : begun_(fs::file_time_type::clock::now()) {}

std::vector<std::string> Remains::now(const Program& program, Of what) const {
  std::vector<std::string> left;
  for (const testing_support::RunningProcess& process : program.processes()) {
    left.push_back(fmt::format("process {}: {}", process.pid, fmt::join(process.arguments, " ")));
  }
  // Names of sockets and of temporary files have the run's, which ends in its coordinator.
  const std::string run = fmt::format("-{}-0", program.pid());
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    if (line.find("syncopate-") != std::string::npos && line.find(run) != std::string::npos) left.push_back(line);
  }
  std::error_code ignored;
  const std::set<std::string> in_use = shared_memory_in_use();
  for (const auto& file : fs::directory_iterator("/dev/shm", ignored)) {
    const bool is_new = fs::last_write_time(file, ignored) >= begun_ && !ignored;
    if (is_new && !in_use.contains(file.path())) left.push_back("shared memory " + file.path().string());
  }
  if (what == Of::kProcesses) return left;
  for (const auto& file : fs::recursive_directory_iterator(program.output(), ignored)) {
    if (file.path().string().find(".tmp-") != std::string::npos) left.push_back(file.path());
  }
  return left;
}

std::vector<std::string> Remains::after(const Program& program, Duration limit, Of what) const {
  const TimePoint deadline = SteadyClock().now() + limit;
  std::vector<std::string> left = now(program, what);
  while (!left.empty() && SteadyClock().now() < deadline) {
    poll(nullptr, 0, 20);
    left = now(program, what);
  }
  return left;
}

void expect_orderly_end(Program& program, const ProgramEnd& end, const Remains& remains) {
  const auto code = static_cast<ExitCode>(end.exit_code);
  EXPECT_TRUE(code == ExitCode::kSuccess || code == ExitCode::kProcessLost || code == ExitCode::kTimeout)
      << end.exit_code << "\n"
      << end.err;
  EXPECT_THAT(remains.after(program, kDeadline), testing::IsEmpty());
  const nlohmann::json summary = program.summary();
  ASSERT_TRUE(summary.is_object()) << end.err;
  const std::string outcome = summary.value("outcome", "");
  if (code == ExitCode::kSuccess) {
    EXPECT_EQ(outcome, "completed");
    EXPECT_FALSE(program.weights().empty());
  } else {
    const std::string verdict = "run_experiment: " + outcome + "\n";
    EXPECT_TRUE(end.err.ends_with(verdict)) << end.err << "\nwhere the record says\n" << verdict;
  }
  ASSERT_TRUE(summary["faults"].is_array()) << end.err;
  EXPECT_FALSE(summary["faults"].empty());
}

}  // namespace syncopate::faults
