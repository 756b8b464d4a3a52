// Runs in a control group of the test's own, which has less of the machine.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "experiments/cluster/exit_code.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing_support::Program;
using testing_support::ProgramEnd;

// It is one of the first version, or of the second where the controller is passed on; removed with the object.
class ControlGroup {
 public:
  ControlGroup(const std::string& controller, const std::string& test) {
    const fs::path root = "/sys/fs/cgroup";
    const fs::path first = root / controller;
    const std::string name = fmt::format("syncopate-{}-{}", test, getpid());
    folder_ = (fs::exists(first / "cgroup.procs") ? first : root) / name;
    is_first_ = folder_.parent_path() == first;
    std::error_code error;
    fs::create_directory(folder_, error);
  }
  ~ControlGroup() {
    std::error_code ignored;
    fs::remove(folder_, ignored);
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  bool is_first() const { return is_first_; }
  bool set(const std::string& file, const std::string& value) const {
    if (!fs::exists(folder_ / file)) return false;
    std::ofstream stream(folder_ / file);
    stream << value << std::flush;
    return static_cast<bool>(stream);
  }
  // What stands in front of a command that is to run in the group.
  std::vector<std::string> around() const {
    return {"/bin/sh", "-c", fmt::format("echo $$ >{}/cgroup.procs && exec \"$@\"", folder_.string()), "sh"};
  }

 private:
  fs::path folder_;
  bool is_first_ = true;
};

TEST(AControlGroup, WhoseQuotaIsUsedUpIsToldFromOtherProcesses) {
  if (testing_support::kSanitized) GTEST_SKIP() << "a sanitizer takes too long with a fiftieth of a core";
  const ControlGroup group("cpu", "quota");
  const bool is_limited = group.is_first()
                              ? group.set("cpu.cfs_period_us", "100000") && group.set("cpu.cfs_quota_us", "2000")
                              : group.set("cpu.max", "2000 100000");
  if (!is_limited) GTEST_SKIP() << "no control group can be made here";
  // So little that the run is stopped by it on a busy machine, too.
  Program program({"--mode=local", "--model=mlp:784-16-10", "--steps=40", "--train-samples=640", "--test-samples=100"},
                  group.around());
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json machine = program.summary()["each_repeat"][0]["machine"];
  EXPECT_EQ(machine["core_quota"], 0.02);
  EXPECT_EQ(machine["cores"], 0.02);
  EXPECT_GT(machine["throttled"], 0.05);
  EXPECT_THAT(end.out, HasSubstr("the CPU quota of 0.02 cores (cgroup) stopped the run's processes in"));
  EXPECT_EQ(nlohmann::json::parse(testing_support::text_of(program.output() / "environment.json"))["core_quota"], 0.02);
}

TEST(AControlGroup, WithoutMemoryForTheRunIsSaidToBeTheReason) {
  if (testing_support::kSanitized) GTEST_SKIP() << "a sanitizer needs more memory than there is";
  const ControlGroup group("memory", "memory");
  if (!group.set(group.is_first() ? "memory.limit_in_bytes" : "memory.max", "400M")) {
    GTEST_SKIP() << "no control group can be made here";
  }
  // 300 MB of weights, as much of gradients, and twice that of moments.
  Program program({"--mode=allreduce", "--workers=2", "--model=mlp:784-8192-8192-10", "--steps=20",
                   "--train-samples=640", "--test-samples=100"},
                  group.around());
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kProcessLost)) << end.err;
  EXPECT_THAT(end.err, HasSubstr("was killed by the kernel, since memory ran out (the OOM killer)"));
}

}  // namespace
}  // namespace syncopate::experiments
