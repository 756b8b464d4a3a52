// Runs on several hosts: real processes on a real network, which the test makes for itself.
#include "tests/experiments/hosts/several_hosts.h"

#include <fstream>

#include "common/device/gpu_inventory.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::SizeIs;
using testing_support::NetworkHosts;

// A job of a second.
Flags small(const Flags& mode) {
  Flags flags{"--model=mlp:784-32-10", "--batch-size=16", "--train-samples=4096", "--test-samples=512", "--epochs=1"};
  flags.insert(flags.end(), mode.begin(), mode.end());
  return flags;
}

TEST_F(SeveralHosts, AreCalibratedByTheLinkBetweenThem) {
  const testing_support::TemporaryFolder folder;
  const std::string file = folder.path() / "cluster.toml";
  Program& program = start(
      "a:1,b:1", {"calibrate", "--model=mlp:784-32-10", "--batch-size=16", "--train-samples=4096", "--test-samples=512",
                  "--transport=sockets", "--output=" + file, "--data-dir=" + testing_support::shared_data_dir()});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr(NetworkHosts::slots("a:1,b:1")));
  const std::string written = testing_support::text_of(file);
  EXPECT_THAT(written, HasSubstr("The link is that between"));
  EXPECT_THAT(written, ContainsRegex("link = \"[0-9.]+[gm]bit\\+[0-9.]+us\""));
  EXPECT_FALSE(std::filesystem::exists(file + ".run")) << "what the short run has left";
}

TEST_F(SeveralHosts, RunPsAndTheRecordSaysWhatRanWhere) {
  Program& program = start("a:1,b:1", small({"--mode=ps", "--servers=2"}));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err << testing_support::text_of(program.output() / "logs/worker-0.log");
  EXPECT_THAT(end.err, IsEmpty());
  EXPECT_THAT(end.out, HasSubstr("ps async, 2 workers, 2 servers on 2 hosts, tcp"));
  EXPECT_THAT(end.out, ContainsRegex("clocks +of other hosts known within [0-9.]+ ms"));
  EXPECT_EQ(program.summary()["total_steps"], 4096 / 16);
  EXPECT_GT(program.summary()["samples_per_second"], 0);
  const nlohmann::json environment =
      nlohmann::json::parse(testing_support::text_of(program.output() / "environment.json"));
  EXPECT_EQ(environment["transport"], "tcp");
  EXPECT_EQ(environment["encrypted"], true);
  ASSERT_THAT(environment["hosts"], SizeIs(2));
  for (int host : {0, 1}) {
    EXPECT_EQ(environment["hosts"][host]["name"], host == 0 ? kA : kB);
    EXPECT_EQ(environment["hosts"][host]["workers"], 1);
    EXPECT_EQ(environment["hosts"][host]["servers"], 1);
  }
  EXPECT_THAT(testing_support::text_of(program.output() / "config.toml"),
              AllOf(HasSubstr("listen-address = \"10.77.0.1\""), HasSubstr("transport = \"tcp\"")));
}

TEST_F(SeveralHosts, RunAllreduceOverEncryptedSockets) {
  Program& program = start("a:1,localhost:1,b:1", small({"--mode=allreduce"}));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err << testing_support::text_of(program.output() / "logs/worker-0.log");
  EXPECT_THAT(end.err, IsEmpty());
  EXPECT_THAT(end.out, HasSubstr("3 workers on 3 hosts, sockets"));
  const nlohmann::json environment =
      nlohmann::json::parse(testing_support::text_of(program.output() / "environment.json"));
  EXPECT_EQ(environment["transport"], "sockets");
  EXPECT_EQ(environment["encrypted"], true);
}

// The clocks are one and the same here: their estimated distance must be within its own uncertainty, so that the
// stamps, corrected by it, are nearly those of one host.
TEST_F(SeveralHosts, HaveTheirClocksComparedAndTheUncertaintyRecorded) {
  Program& program = start("a:1,localhost:1", small({"--mode=ps", "--servers=1"}));
  ASSERT_EQ(program.wait().exit_code, 0);
  const nlohmann::json uncertainty = program.summary()["clock_uncertainty_us"];
  ASSERT_TRUE(uncertainty.contains("worker 0"));
  ASSERT_TRUE(uncertainty.contains("server 0"));
  EXPECT_FALSE(uncertainty.contains("worker 1")) << "it shares the coordinator's clock";
  EXPECT_GT(uncertainty["worker 0"], 0);
  EXPECT_LT(uncertainty["worker 0"], 1e6);
}

TEST_F(SeveralHosts, TrainTheSameWeightsAsOneBitForBit) {
  for (const Flags& mode : {Flags{"--mode=allreduce", "--collective=direct", "--workers=3"},
                            Flags{"--mode=ps", "--consistency=sync", "--workers=3"}}) {
    Program alone(small(mode));
    ASSERT_EQ(alone.wait().exit_code, 0);
    Program& spread = start("a:1,localhost:1,b:1", small(mode));
    const ProgramEnd end = spread.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_THAT(spread.weights(), Not(IsEmpty()));
    EXPECT_TRUE(alone.weights() == spread.weights()) << mode.front();
  }
}

// The longest run of characters that a key could be part of.
std::size_t longest_word(const std::string& text) {
  std::size_t longest = 0, current = 0;
  for (const char c : text) {
    current = c > ' ' && c != '/' && c != '=' && c != ',' ? current + 1 : 0;
    longest = std::max(longest, current);
  }
  return longest;
}

void expect_hidden_keys(const Program& program) {
  constexpr std::size_t kFourKeys = 160;
  for (const auto& process : program.processes()) {
    for (const std::string& argument : process.arguments) EXPECT_LT(longest_word(argument), kFourKeys) << argument;
    const std::string environment = testing_support::text_of(fmt::format("/proc/{}/environ", process.pid));
    const std::string before = testing_support::text_of("/proc/self/environ");
    EXPECT_LE(longest_word(environment), std::max(longest_word(before), kFourKeys - 1));
  }
  for (const auto& file : std::filesystem::recursive_directory_iterator(program.output())) {
    if (!file.is_regular_file()) continue;
    EXPECT_LT(longest_word(testing_support::text_of(file)), kFourKeys) << file;
  }
}

TEST_F(SeveralHosts, KeepTheirKeysOffCommandLinesEnvironmentsAndFiles) {
  Program& program = train("a:1,b:1", {"--mode=allreduce"}, 2);
  ASSERT_TRUE(trains_);
  expect_hidden_keys(program);
}

TEST_F(SeveralHosts, NameAKilledWorkerAndItsHost) {
  Program& program = train("a:1,b:1", {"--mode=allreduce"}, 2);
  ASSERT_TRUE(trains_);
  const pid_t victim = program.process("worker", 1);
  kill(victim, SIGKILL);
  expect_verdict(program, ExitCode::kProcessLost,
                 naming_remote("worker 1", kB, victim) + "was killed by signal 9 \\(Killed\\)");
}

TEST_F(SeveralHosts, EndAndNameAWorkerThatIsStopped) {
  Program& program = train("a:1,b:1", {"--mode=allreduce"}, 2);
  ASSERT_TRUE(trains_);
  const pid_t victim = program.process("worker", 0);
  kill(victim, SIGSTOP);
  expect_verdict(program, ExitCode::kTimeout, naming_remote("worker 0", kA, victim) + "has stopped answering");
}

TEST_F(SeveralHosts, GoOnWithoutALostWorkerUnderPsAsync) {
  Program& program = start("a:2,b:2", training({"--mode=ps", "--workers=3"}, "--steps=6000"));
  ASSERT_TRUE(program.wait_until_training(3));
  const pid_t victim = program.process("worker", 2);
  kill(victim, SIGKILL);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, MatchesRegex(naming_remote("worker 2", kB, victim) + "was killed by signal 9 .*; .* on\n"));
  EXPECT_THAT(program.processes(), IsEmpty());
}

TEST_F(SeveralHosts, NameTheWorkerWhoseRemoteShellIsKilled) {
  Program& program = train("a:1,b:1", {"--mode=allreduce"}, 2);
  ASSERT_TRUE(trains_);
  const pid_t victim = program.process("worker", 1);
  for (const auto& process : program.processes()) {
    if (process.has("--guard") && process.has("--role=worker") && process.has("--rank=1")) kill(process.pid, SIGKILL);
  }
  expect_verdict(program, ExitCode::kProcessLost,
                 naming_remote("worker 1", kB, victim) + "lost its remote shell, which was killed by signal 9");
}

TEST_F(SeveralHosts, AreLeftCleanWhenTheProgramIsKilled) {
  constexpr int kHour = 3600;
  Program& program = start("a:1,b:1", training({"--mode=ps", "--servers=2"}, kWithoutEnd, kHour));
  ASSERT_TRUE(program.wait_until_training(2));
  kill(program.process("worker", 1), SIGSTOP);  // it cannot end itself
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
  EXPECT_TRUE(program.all_gone_within(kDeadline));
}

TEST_F(SeveralHosts, EndInOrderAtCtrlC) {
  Program& program = train("a:1,b:1", {"--mode=allreduce"}, 2);
  ASSERT_TRUE(trains_);
  program.signal(SIGINT);
  expect_verdict(program, ExitCode::kInterrupted, "interrupted at step [0-9]+; what was recorded is kept");
}

class SeveralHostsUnderMpirun : public SeveralHosts {
 protected:
  void SetUp() override {
    if (testing_support::kSanitized) GTEST_SKIP() << testing_support::kWhyNoMpi;
    SeveralHosts::SetUp();
  }
};

const Flags kMpi{"--mode=allreduce", "--collective=mpi", "--launcher=mpirun"};

TEST_F(SeveralHostsUnderMpirun, TrainTheSameWeightsAsOneWithEachRankWhereThePlanSays) {
  Program alone(small({"--mode=allreduce", "--collective=mpi", "--launcher=mpirun", "--workers=3"}));
  ASSERT_EQ(alone.wait().exit_code, 0);
  Program& spread = start("b:1,localhost:1,a:1", small(kMpi));
  const ProgramEnd end = spread.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err << testing_support::text_of(spread.output() / "logs/mpirun.log");
  EXPECT_THAT(end.err, IsEmpty());
  EXPECT_THAT(spread.weights(), Not(IsEmpty()));
  EXPECT_TRUE(alone.weights() == spread.weights());
  const nlohmann::json environment =
      nlohmann::json::parse(testing_support::text_of(spread.output() / "environment.json"));
  EXPECT_EQ(environment["hosts"][0]["name"], kB);
  EXPECT_TRUE(spread.summary()["clock_uncertainty_us"].contains("worker 0"));
  EXPECT_FALSE(spread.summary()["clock_uncertainty_us"].contains("worker 1")) << "it is on the coordinator's host";
  EXPECT_TRUE(spread.summary()["clock_uncertainty_us"].contains("worker 2"));
}

TEST_F(SeveralHostsUnderMpirun, RunServersToo) {
  Program& program = start("a:1,b:1", small({"--mode=ps", "--servers=2", "--launcher=mpirun"}));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err << testing_support::text_of(program.output() / "logs/mpirun.log");
}

TEST_F(SeveralHostsUnderMpirun, KeepTheirKeysHidden) {
  Program& program = train("a:1,b:1", kMpi, 2);
  ASSERT_TRUE(trains_);
  expect_hidden_keys(program);
}

TEST_F(SeveralHostsUnderMpirun, NameAKilledWorkerAndItsHostByMpirunsWord) {
  // So that its silence does not come before mpirun's word.
  Program& program = start("a:1,localhost:1", training(kMpi, kWithoutEnd, 4 * kTimeoutSeconds));
  ASSERT_TRUE(program.wait_until_training(2));
  kill(program.process("worker", 0), SIGKILL);
  expect_verdict(program, ExitCode::kProcessLost,
                 "mpirun ended with exit code 137: mpirun noticed that process rank 0 .* on node " + kA +
                     " exited on signal 9 \\(Killed\\)");
}

TEST_F(SeveralHostsUnderMpirun, EndAndNameAWorkerThatIsStopped) {
  Program& program = train("a:1,b:1", kMpi, 2);
  ASSERT_TRUE(trains_);
  const pid_t victim = program.process("worker", 1);
  kill(victim, SIGSTOP);
  expect_verdict(program, ExitCode::kTimeout, naming_remote("worker 1", kB, victim) + "has stopped answering; stalled");
}

TEST_F(SeveralHostsUnderMpirun, AreLeftCleanWhenTheProgramIsKilled) {
  constexpr int kHour = 3600;
  Flags flags = training(kMpi, kWithoutEnd, kHour);
  Program& program = start("a:1,b:1", flags);
  ASSERT_TRUE(program.wait_until_training(2));
  kill(program.process("worker", 1), SIGSTOP);  // it cannot end itself
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
  EXPECT_TRUE(program.all_gone_within(kDeadline));
}

TEST_F(SeveralHostsUnderMpirun, EndInOrderAtCtrlC) {
  Program& program = train("a:1,b:1", kMpi, 2);
  ASSERT_TRUE(trains_);
  program.signal(SIGINT);
  expect_verdict(program, ExitCode::kInterrupted, "interrupted at step [0-9]+; what was recorded is kept");
}

// Before anything is launched.

class RefusedHosts : public SeveralHosts {
 protected:
  void expect_refusal(Program& program, const std::string& line) {
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, 2);
    EXPECT_THAT(end.err, MatchesRegex("run_experiment: " + line + "\n"));
    EXPECT_FALSE(std::filesystem::exists(program.output()));
  }
  // A program that is not ours.
  std::string script(const std::string& text) {
    const std::filesystem::path path = folder_.path() / "program";
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return "--remote-program=" + path.string();
  }

 private:
  testing_support::TemporaryFolder folder_;
};

TEST_F(RefusedHosts, ThatCannotBeReachedAreNamed) {
  Flags flags = small({"--mode=ps", "--listen-address=10.77.0.1", "--hosts=10.77.0.2:1,10.77.0.9:1,10.77.0.8:1"});
  flags.push_back(hosts_->remote_shell());
  Program program(flags, hosts_->on("home"));
  expect_refusal(program,
                 "host 10.77.0.9: [^;]*: the remote shell ended with exit code 255: no route to 10.77.0.9; "
                 "host 10.77.0.8: [^;]*: the remote shell ended with exit code 255: no route to 10.77.0.8");
}

TEST_F(RefusedHosts, WithoutTheProgramAreNamed) {
  expect_refusal(start("a:2", small({"--mode=ps", "--remote-program=/no/such/program"})),
                 "host 10.77.0.2: cannot run /no/such/program --probe in [^:]*: the remote shell ended with exit code "
                 "127: .*No such file or directory");
}

TEST_F(RefusedHosts, WithAnotherBuildAreNamed) {
  const std::string answer =
      "echo "
      "'{\"syncopate_host\":1,\"fingerprint\":\"0123456789abcdef\",\"interface\":\"\",\"host\":\"b\",\"kernel\":\"\","
      "\"cpu_model\":\"\",\"cores\":1,\"memory_gib\":1.0,\"compiler\":\"\",\"build\":\"\",\"vector_set\":\"\","
      "\"commit\":\"\",\"gpu_program\":false,\"gpus\":[],\"why_no_gpu\":\"\"}'";
  expect_refusal(start("b:2", small({"--mode=allreduce", script(answer)})),
                 "host 10.77.0.3: .*/program is of other sources \\(0123456789abcdef\\) than this program .*");
}

TEST_F(RefusedHosts, ThatDoNotAnswerAreNamedInTime) {
  expect_refusal(start("a:2", small({"--mode=allreduce", "--timeout=1s", script("exec sleep 60")})),
                 "host 10.77.0.2: has not answered within 1 s");
}

TEST_F(RefusedHosts, WithoutGpusAreNamedWhereTheseAreAskedFor) {
  if (find_gpus().ok()) GTEST_SKIP() << "there is a GPU";
  expect_refusal(start("a:1,b:1", small({"--mode=allreduce", "--device=cuda"})), "--device=cuda: host 10.77.0.2: .*");
}

}  // namespace
}  // namespace syncopate::experiments
