// run_experiment --hosts -- PROGRAM: a program of the person's own on several hosts, over a real network that the test
// makes for itself. What is said of names and ends is the same as on one host (own_program_test.cc).
#include <poll.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/experiments/hosts/several_hosts.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing_support::lines_of;
using testing_support::NetworkHosts;
using testing_support::text_of;
using std::literals::chrono_literals::operator""s;

const std::string kProgram = SYNCOPATE_OWN_PROGRAM;

bool is_there(pid_t process) {
  const std::string status = text_of(fmt::format("/proc/{}/status", process));
  return !status.empty() && status.find("State:\tZ") == status.npos;
}

class OwnProgramOnHosts : public SeveralHosts {
 protected:
  // Starts `script`, for a shell, on each slot.
  Program& start_script(const std::string& slots, Flags flags, const std::string& script) {
    return start(slots, std::move(flags) + Flags{"--command=sh -c '" + script + "'"});
  }

  // Starts workers that write the number of their process and of a child of theirs, train, and then hang, whoever asks
  // them to end. Returns once they train.
  Program& start_hanging(const std::string& slots, int workers, Flags flags = {}) {
    Program& program =
        start_script(slots, Flags{"--mode=allreduce"} + flags,
                     fmt::format("trap \"\" TERM; sleep 3600 & echo $! > {0}/child-$RANK; echo $$ > {0}/worker-$RANK; "
                                 "{1} 5; while :; do sleep 0.05; done",
                                 folder_.path().string(), kProgram));
    trains_ = program.wait_until_training(workers);
    return program;
  }

  pid_t number_in(const std::string& file) const { return std::stoi("0" + text_of(folder_.path() / file)); }

  // Nothing of it is left on any host: what start_hanging() has started, and what is above it.
  void expect_nothing_left(Program& program, int workers) const {
    EXPECT_TRUE(program.all_gone_within(kDeadline));
    const TimePoint deadline = SteadyClock().now() + kDeadline;
    for (int rank = 0; rank < workers; ++rank) {
      for (const char* name : {"worker", "child"}) {
        const pid_t process = number_in(fmt::format("{}-{}", name, rank));
        ASSERT_GT(process, 1);
        while (is_there(process) && SteadyClock().now() < deadline) poll(nullptr, 0, 20);
        EXPECT_FALSE(is_there(process)) << name << " of rank " << rank;
      }
    }
  }

  // The guard of this rank, which for run_experiment is the remote shell.
  pid_t shell_of(const Program& program, int rank) const {
    for (const auto& process : program.processes()) {
      if (!process.has("--guard")) continue;
      std::ifstream environment(fmt::format("/proc/{}/environ", process.pid));
      for (std::string variable; std::getline(environment, variable, '\0');) {
        if (variable == fmt::format("RANK={}", rank)) return process.pid;
      }
    }
    ADD_FAILURE() << "no guard of rank " << rank;
    return 0;
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(OwnProgramOnHosts, IsMeasuredByWhatItTells) {
  Program& program = start("a:1,b:1", {"--mode=allreduce", "--warmup-steps=5", "--command=" + kProgram + " 50"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, IsEmpty());
  EXPECT_THAT(end.out, HasSubstr("rank 0 of 2, allreduce")) << "what rank 0 prints is seen";
  EXPECT_THAT(end.out, Not(HasSubstr("rank 1 of 2")));
  EXPECT_THAT(text_of(program.output() / "logs/worker-1.log"), HasSubstr("rank 1 of 2"));
  EXPECT_THAT(end.out, HasSubstr("2 workers on 2 hosts, sockets"));
  EXPECT_THAT(end.out, ContainsRegex("clocks +of other hosts known within [0-9.]+ ms"));
  const nlohmann::json summary = program.summary();
  EXPECT_EQ(summary["parameters"], 1234);
  EXPECT_EQ(summary["total_steps"], 100);
  EXPECT_EQ(summary["final_test_accuracy"], 0.75);
  EXPECT_GT(summary["peak_memory_bytes"]["worker 1"], 100000) << "of the program, not of the remote shell";
  EXPECT_THAT(program.column("steps.csv", "worker"), SizeIs(100));
  for (const auto& entry : fs::directory_iterator(program.output() / "logs")) {
    EXPECT_NE(entry.path().extension(), ".steps") << "what has been read is not kept twice";
  }
}

// The hosts share a clock here, so that the difference that is found must be within its own uncertainty, and the
// corrected stamps are nearly those of one host.
TEST_F(OwnProgramOnHosts, HasItsClocksComparedAndTheUncertaintyRecorded) {
  Program& program = start("a:1,localhost:1", {"--mode=allreduce", "--command=" + kProgram + " 50"});
  ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
  const nlohmann::json uncertainty = program.summary()["clock_uncertainty_us"];
  ASSERT_TRUE(uncertainty.contains("worker 0"));
  EXPECT_FALSE(uncertainty.contains("worker 1")) << "it shares this host's clock";
  EXPECT_GT(uncertainty["worker 0"], 0);
  EXPECT_LT(uncertainty["worker 0"], 1e6);
}

std::map<std::string, std::string> variables_in(const std::string& log) {
  std::map<std::string, std::string> variables;
  for (const std::string& line : lines_of(log)) {
    if (const std::size_t equals = line.find('='); equals != line.npos) {
      variables[line.substr(0, equals)] = line.substr(equals + 1);
    }
  }
  return variables;
}

TEST_F(OwnProgramOnHosts, IsToldWhereItIsWhereTheOthersAreAndTheSecretOfTheRun) {
  Program& program = start_script("a:1,localhost:1,b:2", {"--mode=ps", "--servers=3"},
                                  "env; echo SECRET=$(sha256sum < $SYNCOPATE_SECRET_FILE); "
                                  "echo RIGHTS=$(stat -Lc %a $SYNCOPATE_SECRET_FILE); "
                                  "echo LENGTH=$(wc -c < $SYNCOPATE_SECRET_FILE); exec " +
                                      kProgram + " 5");
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  std::vector<std::map<std::string, std::string>> of;
  for (int rank = 0; rank < 4; ++rank) {
    of.push_back(variables_in(text_of(program.output() / fmt::format("logs/worker-{}.log", rank))));
  }
  const std::vector<std::string> addresses = {kA, NetworkHosts::address_of("home"), kB, kB};
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(of[rank]["RANK"], fmt::to_string(rank));
    EXPECT_EQ(of[rank]["LOCAL_RANK"], rank == 3 ? "1" : "0");
    EXPECT_EQ(of[rank]["LOCAL_WORLD_SIZE"], rank >= 2 ? "2" : "1");
    EXPECT_EQ(of[rank]["WORLD_SIZE"], "4");
    EXPECT_EQ(of[rank]["SYNCOPATE_ADDRESS"], addresses[rank]);
    EXPECT_EQ(of[rank]["MASTER_ADDR"], kA);
    EXPECT_EQ(of[rank]["MASTER_PORT"], of[0]["MASTER_PORT"]);
    EXPECT_EQ(of[rank]["SYNCOPATE_WIRE"], "sockets");
    EXPECT_EQ(of[rank]["SYNCOPATE_SERVERS"], "3");
    EXPECT_EQ(of[rank]["SECRET"], of[0]["SECRET"]);
    EXPECT_EQ(of[rank]["RIGHTS"], "600");
    EXPECT_EQ(of[rank]["LENGTH"], "64");
  }
  EXPECT_GT(std::stoi("0" + of[0]["MASTER_PORT"]), 0);
  const std::string first = of[0]["SECRET"];
  Program& again = start_script(
      "a:1", {"--mode=allreduce"},
      "echo SECRET=$(sha256sum < $SYNCOPATE_SECRET_FILE); echo WIRE=$SYNCOPATE_WIRE; exec " + kProgram + " 5");
  ASSERT_EQ(again.wait().exit_code, 0) << again.errors();
  const auto alone = variables_in(text_of(again.output() / "logs/worker-0.log"));
  EXPECT_NE(alone.at("SECRET"), first) << "each run has its own";
  EXPECT_EQ(alone.at("WIRE"), "shm") << "nobody is on another host than its peers";
}

TEST_F(OwnProgramOnHosts, IsToldAddressesOfIpv6) {
  if (!hosts_->has_ipv6()) GTEST_SKIP() << "the kernel has no IPv6";
  const std::string script = "echo OWN=$SYNCOPATE_ADDRESS; echo FIRST=$MASTER_ADDR; exec " + kProgram + " 5";
  Program& program = program_.emplace(Flags{"--mode=allreduce", "--hosts=[fd77::2]:1,[fd77::3]:1",
                                            hosts_->remote_shell(), "--command=sh -c '" + script + "'"},
                                      hosts_->on("home"));
  ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
  const auto told = variables_in(text_of(program.output() / "logs/worker-1.log"));
  EXPECT_EQ(told.at("OWN"), "fd77::3");
  EXPECT_EQ(told.at("FIRST"), "fd77::2");
}

TEST_F(OwnProgramOnHosts, IsComparedUnderModes) {
  Program& program = start("a:1,b:1", {"compare", "--modes=allreduce,ps:async", "--repeat=1", "--warmup-steps=2",
                                       "--command=" + kProgram + " 20"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("allreduce"), HasSubstr("ps:async")));
}

TEST_F(OwnProgramOnHosts, PassesOnMoreOutputThanAPipeHolds) {
  Program& program = start_script("a:1,b:1", {"--mode=allreduce"},
                                  "seq 200000; " + kProgram + " 5; seq 200000; echo the end of $RANK");
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  for (int rank = 0; rank < 2; ++rank) {
    const auto lines = lines_of(text_of(program.output() / fmt::format("logs/worker-{}.log", rank)));
    EXPECT_THAT(lines, SizeIs(400002));
    EXPECT_EQ(lines.back(), fmt::format("the end of {}", rank));
  }
}

TEST_F(OwnProgramOnHosts, IsNamedWithItsHostAndLastWordsWhenItFails) {
  Program& program = start("a:1,b:1", {"--mode=allreduce", "--command=" + kProgram + " 5 fails:1"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.err, ContainsRegex("worker 1 \\(host " + kB +
                                     "\\) ended with exit code 3: ValueError: the data is "
                                     "gone \\(.*worker-1.log\\)"));
}

TEST_F(OwnProgramOnHosts, KeepsAnExitCodeThatARemoteShellWouldMeanOtherwise) {
  Program& program = start_script("a:1,b:1", {"--mode=allreduce"}, kProgram + " 5; test $RANK = 0 || exit 255");
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.err, HasSubstr("worker 1 (host " + kB + ") ended with exit code 255"));
}

TEST_F(OwnProgramOnHosts, MustBeThere) {
  Program& program = start("a:1,b:1", {"--mode=allreduce", "--command=no-such-program x"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err,
              ContainsRegex("worker [01] \\(host 10.77.0.[23]\\) .*cannot start no-such-program: No such file"));
}

TEST_F(OwnProgramOnHosts, IsNamedWhenItIsKilled) {
  Program& program = start_hanging("a:1,b:1", 2, {"--timeout=1"});
  ASSERT_TRUE(trains_);
  kill(number_in("worker-1"), SIGKILL);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.err, HasSubstr("worker 1 (host " + kB + ") was killed by signal 9 (Killed)"));
  expect_nothing_left(program, 2);
}

TEST_F(OwnProgramOnHosts, IsEndedWhereItIsStoppedOrHangsAfterAnotherHasFailed) {
  Program& program = start_hanging("a:1,b:1,localhost:1", 3, {"--timeout=1"});
  ASSERT_TRUE(trains_);
  kill(number_in("worker-0"), SIGSTOP);
  kill(number_in("worker-1"), SIGKILL);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.err, HasSubstr("worker 1 (host " + kB + ") was killed by signal 9 (Killed)"));
  expect_nothing_left(program, 3);
}

TEST_F(OwnProgramOnHosts, IsNamedWhenItsRemoteShellIsKilled) {
  Program& program = start_hanging("a:1,b:1", 2, {"--timeout=1"});
  ASSERT_TRUE(trains_);
  kill(shell_of(program, 1), SIGKILL);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.err, HasSubstr("worker 1 (host " + kB + ") lost its remote shell, which was killed by signal 9"));
  expect_nothing_left(program, 2);
}

TEST_F(OwnProgramOnHosts, DiesWithItsLauncher) {
  Program& program = start_hanging("a:1,b:1,localhost:1", 3);
  ASSERT_TRUE(trains_);
  kill(number_in("worker-1"), SIGSTOP);  // it cannot end itself
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
  expect_nothing_left(program, 3);
}

TEST_F(OwnProgramOnHosts, IsInterruptedAndKilledIfItDoesNotEnd) {
  Program& program = start_hanging("a:1,localhost:1", 2);
  ASSERT_TRUE(trains_);
  program.signal(SIGINT);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 130);
  EXPECT_THAT(end.err, HasSubstr("interrupted; what was recorded is kept"));
  EXPECT_THAT(program.column("steps.csv", "worker"), SizeIs(10));
  expect_nothing_left(program, 2);
}

TEST_F(OwnProgramOnHosts, IsShownWithTheRemoteCommandsByADryRun) {
  Program& program = start("a:1,localhost:1", {"--mode=allreduce", "--dry-run", "--command=python train.py"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, ContainsRegex("worker +0 +" + kA + " .*/shell " + kA +
                                     " 'cd .* RANK=0 .*--guard .*"
                                     "--relay-command=10.77.0.1 .* python train.py'"));
}

// A remote shell that lets hosts be asked, and then fails or waits.
class OwnProgramBehindAShell : public OwnProgramOnHosts {
 protected:
  Program& start_through(const std::string& what_it_does) {
    const fs::path path = folder_.path() / "shell";
    const std::string shell = hosts_->remote_shell();
    std::ofstream(path) << "#!/bin/sh\ncase $2 in *--relay-command*) " << what_it_does << " ;; esac\nexec "
                        << shell.substr(shell.find('=') + 1) << " \"$@\"\n";
    fs::permissions(path, fs::perms::owner_all);
    const Flags flags{"--mode=allreduce", "--hosts=" + NetworkHosts::slots("localhost:1,a:1"), "--timeout=2",
                      "--remote-shell=" + path.string(), "--command=" + kProgram + " 5"};
    return program_.emplace(flags, hosts_->on("home"));
  }
};

TEST_F(OwnProgramBehindAShell, DoesNotBeginWhereOneHostIsLost) {
  Program& program = start_through("echo no route >&2; exit 255");
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.err, HasSubstr("worker 1 (host " + kA + ") lost its remote shell, which ended with exit code 255"));
  EXPECT_THAT(end.out, Not(HasSubstr("rank 0 of 2")));
  EXPECT_TRUE(program.all_gone_within(kDeadline));
}

TEST_F(OwnProgramBehindAShell, DoesNotWaitForAHostForEver) {
  Program& program = start_through("exec sleep 3600");
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 6);
  EXPECT_THAT(end.err, HasSubstr("worker 1 (host " + kA + ") could not be started within 2 s"));
  EXPECT_TRUE(program.all_gone_within(kDeadline));
}

TEST_F(OwnProgramBehindAShell, PutsUpWithAGreeting) {
  Program& program = start_through("echo Welcome to the machine");
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(text_of(program.output() / "logs/worker-1.log"), HasSubstr("Welcome to the machine\n"));
}

}  // namespace
}  // namespace syncopate::experiments
