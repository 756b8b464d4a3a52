// What a shell hands to a program: signals that are ignored, limits, standard output that cannot be written, and two
// commands at once.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>

#include "experiments/cluster/exit_code.h"
#include "tests/support/build_paths.h"
#include "tests/support/ordinary_user.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::run_program;
using testing_support::TemporaryFolder;
using testing_support::operator+;

using Flags = std::vector<std::string>;

const Flags kShellJob{"--model=mlp:784-16-10", "--batch-size=16", "--train-samples=640", "--test-samples=100"};

// What a shell does before it becomes the program.
Flags from_shell(const std::string& line) { return {"/bin/sh", "-c", line + " exec \"$@\"", "sh"}; }

class IgnoredSignal : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(By, IgnoredSignal, testing::Values(SIGHUP, SIGINT, SIGTERM),
                         [](const auto& signal) { return std::string("SIG") + sigabbrev_np(signal.param); });

TEST_P(IgnoredSignal, StaysIgnored) {
  Program program(kShellJob + Flags{"--mode=ps", "--steps=3000"}, from_shell(fmt::format("trap '' {};", GetParam())));
  ASSERT_TRUE(program.wait_until_training(2));
  for (int times = 0; times < 3; ++times) program.signal(GetParam());
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(program.summary()["outcome"], "completed");
}

// It need not end by Ctrl-C to be stopped.
TEST(ARunWithIgnoredSignals, CanBeStopped) {
  const TemporaryFolder folder;
  Program program(kShellJob + Flags{"--mode=local", "--steps=100000000"},
                  from_shell(fmt::format("trap '' INT; export XDG_RUNTIME_DIR={} XDG_CACHE_HOME={};",
                                         folder.path().string(), folder.path().string())));
  ASSERT_TRUE(program.wait_until_training(1));
  Program stop({"stop", std::to_string(program.pid())},
               from_shell(fmt::format("export XDG_RUNTIME_DIR={} XDG_CACHE_HOME={};", folder.path().string(),
                                      folder.path().string())));
  const ProgramEnd stopped = stop.wait();
  EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
  EXPECT_EQ(program.wait().exit_code, static_cast<int>(ExitCode::kInterrupted));
}

TEST(ALimitOfFiles, FailsTheWriteAndEndsNoProcess) {
  const Flags large{"--model=mlp:784-2048-10", "--batch-size=16", "--train-samples=640", "--test-samples=100"};
  for (const char* mode : {"--mode=local", "--mode=ps", "--mode=allreduce"}) {
    Program program(large + Flags{mode, "--steps=40", "--checkpoint-every=20"}, from_shell("ulimit -f 9000;"));
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kOutput)) << mode << "\n" << end.err;
    EXPECT_THAT(end.err, AllOf(HasSubstr("File too large"), Not(HasSubstr("signal")))) << mode;
  }
}

class EveryCommand : public testing::TestWithParam<Flags> {};

INSTANTIATE_TEST_SUITE_P(Of, EveryCommand,
                         testing::Values(Flags{"--version"}, Flags{"--help"}, kShellJob + Flags{"--dry-run"},
                                         kShellJob + Flags{"--epochs=1"},
                                         kShellJob + Flags{"compare", "--modes=local", "--dry-run"}, Flags{"ps"},
                                         Flags{"demo"},
                                         Flags{"predict", "--profile=resnet50", "--workers=4", "--batch-size=64",
                                               "--step-time=300ms", "--shape=25gbit"},
                                         Flags{"reproduce", "nccl-links"},
                                         Flags{"submit", "--slurm", "--workers=2", "--mode=ps"}),
                         [](const auto& command) {
                           std::string name = command.param.front() == kShellJob.front()
                                                  ? command.param[kShellJob.size()]
                                                  : command.param.front();
                           std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
                           return fmt::format("{}{}", name, command.index);
                         });

TEST_P(EveryCommand, FailsIfWhatItSaysCannotBeWritten) {
  Program works(GetParam());
  const ProgramEnd end = works.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  ASSERT_THAT(end.out, Not(IsEmpty()));
  Program full(GetParam(), from_shell("exec >/dev/full;"));
  const ProgramEnd unwritten = full.wait();
  EXPECT_EQ(unwritten.exit_code, static_cast<int>(ExitCode::kOutput)) << unwritten.err;
  EXPECT_THAT(unwritten.err, HasSubstr("standard output: cannot be written: No space left on device"));
  Program closed(GetParam(), from_shell("exec >&-;"));
  EXPECT_EQ(closed.wait().exit_code, static_cast<int>(ExitCode::kOutput));
}

TEST_P(EveryCommand, EndsQuietlyIfNobodyReadsIt) {
  Program program(GetParam(), {"/bin/sh", "-c", "{ \"$@\"; echo $? >&2; } | true", "sh"});
  EXPECT_EQ(program.wait().err, "0\n");
}

TEST(ANamedPipe, IsNoInput) {
  const TemporaryFolder folder;
  const std::string pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const Flags& flags :
       {Flags{"--config=" + pipe}, Flags{"--mode=allreduce", "--hostfile=" + pipe}, Flags{"study", pipe},
        Flags{"--resume=" + pipe}, Flags{"--output=" + pipe}, Flags{"compare", pipe, pipe}, Flags{"why", pipe},
        Flags{"evaluate", pipe}, Flags{"report", pipe},
        Flags{"--resume=" + folder.path().string(), "--checkpoint-key-file=" + pipe}}) {
    const ProgramEnd end = run_program(flags);
    EXPECT_GT(end.exit_code, 0) << flags.front();
    EXPECT_THAT(end.err, HasSubstr(pipe)) << flags.front();
  }
  EXPECT_THAT(run_program({"--config=" + pipe}).err, HasSubstr("is not a regular file, but a pipe"));
}

TEST(AFolder, OfAnotherUserIsSaidToBe) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  const TemporaryFolder folder;
  ASSERT_EQ(chown(folder.path().c_str(), testing_support::kNobody, testing_support::kNobody), 0);
  const std::string output = "--output=" + folder.path().string();
  const ProgramEnd end = run_program(kShellJob + Flags{"--mode=local", "--epochs=1", output});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(end.err, "warning: " + output + ": belongs to nobody, who can read and change what is there\n");
  EXPECT_THAT(run_program({"why", folder.path().string()}).err, HasSubstr(": belongs to nobody, who can"));
}

TEST(APipeOfTheShell, IsAnInput) {
  Program program(Flags{"--config=/dev/stdin", "--dry-run"}, {"/bin/sh", "-c", "echo 'mode = \"ps\"' | \"$@\"", "sh"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("--role=server"));
}

TEST(TwoRuns, ForOneFolderAreOneRunAndARefusal) {
  for (int pair = 0; pair < 6; ++pair) {
    const TemporaryFolder folder;
    const Flags flags = kShellJob + Flags{"--mode=local", "--epochs=2", "--output=" + (folder.path() / "run").string()};
    Program first(flags + Flags{"--seed=1"}), second(flags + Flags{"--seed=2"});
    std::vector<int> codes{first.wait().exit_code, second.wait().exit_code};
    std::ranges::sort(codes);
    EXPECT_EQ(codes, (std::vector{0, static_cast<int>(ExitCode::kUsage)}));
  }
}

// Program would name a folder.
TEST(SeveralRuns, WithoutANameOfTheirOwnKeepTheirResultsApart) {
  const TemporaryFolder folder;
  const std::string line = fmt::format(
      "shift; cd {0}; for seed in 1 2 3; do {1} --mode=local --epochs=1 {2} --data-dir={3} --device=cpu --seed=$seed & "
      "done; wait; exec true",
      folder.path().string(), testing_support::syncopate_program(), fmt::join(kShellJob, " "),
      testing_support::shared_data_dir());
  Program program({}, {"/bin/sh", "-c", line, "sh"});
  const ProgramEnd end = program.wait();
  EXPECT_THAT(end.err, IsEmpty());
  int whole = 0;
  for (const auto& entry : fs::directory_iterator(folder.path() / "results")) {
    whole += fs::exists(entry.path() / "summary.json") ? 1 : 0;
  }
  EXPECT_EQ(whole, 3);
}

}  // namespace
}  // namespace syncopate::experiments
