// What a user without rights finds when they run the program, over every wire and launcher: files for whom their umask
// says, and processes whose memory nobody else can read.
#include "tests/support/ordinary_user.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing_support::as_ordinary_user;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::RunningProcess;
using testing_support::TemporaryFolder;
using testing_support::text_of;

using Flags = std::vector<std::string>;

struct Job {
  const char* name;
  Flags flags;
};

// Somebody who runs a job, with a folder of their own.
class OrdinaryUser : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = testing_support::why_no_ordinary_user();
    if (!why.empty()) GTEST_SKIP() << why;
  }

  Flags job(const Flags& flags) const {
    Flags all{"--model=mlp:784-32-10",
              "--batch-size=16",
              "--train-samples=4096",
              "--test-samples=256",
              "--warmup-steps=0",
              "--output=" + (folder_.path() / "run").string(),
              "--data-dir=" + (folder_.path() / "data").string()};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }

  // Returns the files and folders that are open to more than `closed` says, and how many there are.
  std::vector<std::string> too_open(mode_t closed) const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      struct stat file {};
      if (lstat(entry.path().c_str(), &file) == 0 && (file.st_mode & closed) != 0) found.push_back(entry.path());
    }
    return found;
  }

  TemporaryFolder folder_;
};

class EveryWire : public OrdinaryUser, public testing::WithParamInterface<Job> {};

INSTANTIATE_TEST_SUITE_P(
    OrdinaryUser, EveryWire,
    testing::Values(Job{"Local", {"--mode=local"}},  //
                    Job{"PsShm", {"--mode=ps", "--transport=shm"}}, Job{"PsIpc", {"--mode=ps", "--transport=ipc"}},
                    Job{"PsTcp", {"--mode=ps", "--transport=tcp"}},
                    Job{"PsSockets", {"--mode=ps", "--transport=sockets"}},
                    Job{"RingShm", {"--mode=allreduce", "--collective=ring", "--transport=shm"}},
                    Job{"RingIpc", {"--mode=allreduce", "--collective=ring", "--transport=ipc"}},
                    Job{"RingTcp", {"--mode=allreduce", "--collective=ring", "--transport=tcp"}},
                    Job{"RingSockets", {"--mode=allreduce", "--collective=ring", "--transport=sockets"}},
                    Job{"Direct", {"--mode=allreduce", "--collective=direct"}},
                    Job{"RingUnderMpirun", {"--mode=allreduce", "--collective=ring", "--launcher=mpirun"}},
                    Job{"PsUnderMpirun", {"--mode=ps", "--launcher=mpirun"}},
                    Job{"Mpi", {"--mode=allreduce", "--collective=mpi", "--launcher=mpirun"}}),
    [](const auto& instance) { return instance.param.name; });

TEST_P(EveryWire, ServesThemAndKeepsTheirFiles) {
  const bool is_mpi = GetParam().name == std::string("Mpi");
  if (testing_support::kSanitized && is_mpi) GTEST_SKIP() << testing_support::kWhyNoMpi;
  Flags flags = job(GetParam().flags);
  flags.emplace_back("--epochs=1");
  if (GetParam().flags[0] != "--mode=local") flags.emplace_back("--workers=2");
  Program program(flags, as_ordinary_user(folder_.path(), "077"));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_TRUE(fs::exists(program.output() / "model.safetensors"));
  EXPECT_TRUE(fs::exists(program.output() / "logs"));
  EXPECT_FALSE(fs::is_empty(folder_.path() / "data"));
  EXPECT_THAT(too_open(077), testing::IsEmpty());
}

TEST_F(OrdinaryUser, KeepsCheckpointsToThemselves) {
  const auto before = as_ordinary_user(folder_.path(), "077");
  Flags flags = job({"--mode=ps", "--workers=2", "--steps=60", "--checkpoint-every=20"});
  {
    Program program(flags, before);
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
  }
  EXPECT_TRUE(fs::exists(folder_.path() / "run/checkpoints"));
  EXPECT_THAT(too_open(077), testing::IsEmpty());
}

TEST_F(OrdinaryUser, SharesFilesWithTheGroupWhereTheUmaskSaysSo) {
  Program program(job({"--mode=ps", "--workers=2", "--steps=60", "--checkpoint-every=20"}),
                  as_ordinary_user(folder_.path(), "027"));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(too_open(027), testing::IsEmpty());
  for (const char* name : {"run/summary.json", "run/steps.csv", "run/model.safetensors", "run/logs/worker-0.log"}) {
    struct stat file {};
    ASSERT_EQ(stat((folder_.path() / name).c_str(), &file), 0) << name;
    EXPECT_EQ(file.st_mode & 0777u, 0640u) << name;
  }
}

TEST_F(OrdinaryUser, ComparesInFilesOfTheirOwn) {
  Flags flags = job({"--workers=2", "--epochs=1", "--modes=local,ps:async", "--repeat=1"});
  flags.insert(flags.begin(), "compare");
  Program program(flags, as_ordinary_user(folder_.path(), "077"));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_TRUE(fs::exists(folder_.path() / "run/comparison.html"));
  EXPECT_THAT(too_open(077), testing::IsEmpty());
}

// The kernel gives what it tells of a process to root where nobody else may read its memory.
bool is_private(pid_t process) {
  struct stat environment {};
  return stat(("/proc/" + std::to_string(process) + "/environ").c_str(), &environment) == 0 && environment.st_uid == 0;
}

std::string core_limit_of(pid_t process) {
  for (const std::string& line : testing_support::lines_of(text_of("/proc/" + std::to_string(process) + "/limits"))) {
    if (line.starts_with("Max core file size")) return line;
  }
  return {};
}

class EveryProcess : public OrdinaryUser, public testing::WithParamInterface<Job> {};

INSTANTIATE_TEST_SUITE_P(OrdinaryUser, EveryProcess,
                         testing::Values(Job{"Ps", {"--mode=ps"}}, Job{"Allreduce", {"--mode=allreduce"}},
                                         Job{"UnderMpirun", {"--mode=ps", "--launcher=mpirun"}}),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(EveryProcess, LeavesNoDumpAndIsReadByNobodyButThoseItLendsTo) {
  Flags flags = job(GetParam().flags);
  flags.insert(flags.end(), {"--workers=2", "--straggler=all:+5", "--epochs=100"});
  Program program(flags, as_ordinary_user(folder_.path(), "077"));
  ASSERT_TRUE(program.wait_until_training(2));
  const bool under_mpirun = GetParam().name == std::string("UnderMpirun");
  std::vector<RunningProcess> processes = program.processes();
  EXPECT_GE(processes.size(), 3u);
  processes.push_back({program.pid(), {"run_experiment", "itself"}});
  for (const RunningProcess& process : processes) {
    const std::string& what = process.arguments.size() > 1 ? process.arguments[1] : process.arguments[0];
    EXPECT_THAT(core_limit_of(process.pid), testing::ContainsRegex("Max core file size +1 ")) << what;
    const bool lends = under_mpirun && what != "--role=evaluator" && what != "--loopback-guard";
    EXPECT_EQ(is_private(process.pid), !lends && !testing_support::kSanitized) << what;
  }
  program.signal(SIGKILL);
  program.wait();
}

}  // namespace
}  // namespace syncopate::experiments
