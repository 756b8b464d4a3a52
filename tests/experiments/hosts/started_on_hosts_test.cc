// Processes that somebody else has started on several hosts: with torchrun's environment, and by a real mpirun.
#include <algorithm>
#include <fstream>

#include "tests/experiments/hosts/several_hosts.h"
#include "tests/support/build_paths.h"

namespace syncopate::experiments {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

class StartedOnHosts : public SeveralHosts {
 protected:
  void SetUp() override {
    SeveralHosts::SetUp();
    std::ofstream(secret()) << std::string(32, 's');
    std::filesystem::permissions(secret(), std::filesystem::perms::owner_read);
  }

  std::filesystem::path secret() const { return folder_.path() / "secret"; }

  // Starts two ranks on a, then two on b, as torchrun would; rank 0 last. The others' folders of results stay empty.
  void start_ranks(const Flags& flags, const std::string& address = kA) {
    for (int rank = 3; rank >= 0; --rank) {
      const char* const host = rank < 2 ? "a" : "b";
      Flags before = have_names_ ? hosts_->named(host) : hosts_->on(host);
      before.insert(before.end(), {"env", "RANK=" + std::to_string(rank), "LOCAL_RANK=" + std::to_string(rank % 2),
                                   "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=" + address, "MASTER_PORT=29500",
                                   "SYNCOPATE_SECRET_FILE=" + secret().string()});
      ranks_.insert(ranks_.begin(), std::make_unique<Program>(flags, before));
    }
  }
  Program& first() { return *ranks_.front(); }
  // The process itself, not its shell on the first host, which has the same words.
  pid_t process_of_worker(int rank) {
    const auto is_it = [&](const testing_support::RunningProcess& process) {
      return process.has("--role=worker") && process.has(fmt::format("--rank={}", rank)) &&
             !process.has("--task-shell");
    };
    const auto processes = first().processes();
    const auto found = std::ranges::find_if(processes, is_it);
    return found == processes.end() ? 0 : found->pid;
  }
  void expect_others_end_with(int exit_code) {
    for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
      const ProgramEnd end = ranks_[rank]->wait(kDeadline);
      EXPECT_EQ(end.exit_code, exit_code) << "rank " << rank << ": " << end.err;
      EXPECT_EQ(end.out, "");
    }
  }

  const testing_support::TemporaryFolder folder_;
  bool have_names_ = true;  // hosts, of their own
  std::vector<std::unique_ptr<Program>> ranks_;
};

TEST_F(StartedOnHosts, RanksOfTorchrunAreOneRun) {
  start_ranks(training({"--mode=ps", "--servers=2", "--consistency=sync"}, "--steps=60"));
  const ProgramEnd end = first().wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("2 workers, 2 servers on 2 hosts, tcp"));
  expect_others_end_with(0);
  const std::string record = testing_support::text_of(first().output() / "config.toml");
  EXPECT_THAT(record, HasSubstr("\nhosts = \"localhost:1,b:1\""));
  EXPECT_THAT(record, HasSubstr("\nlisten-address = \"" + kA + "\""));

  // What started the processes changes nothing of what they compute.
  Program here(training({"--mode=ps", "--servers=2", "--consistency=sync", "--workers=2"}, "--steps=60"));
  ASSERT_EQ(here.wait().exit_code, 0);
  EXPECT_EQ(first().weights(), here.weights());
}

TEST_F(StartedOnHosts, HostsOfOneNameAreRefused) {
  have_names_ = false;
  start_ranks(training({"--mode=allreduce"}));
  const ProgramEnd end = first().wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, ContainsRegex("ranks 0 and 2 are on " + kA + " and " + kB + ", and both hosts are called "));
  expect_others_end_with(0);
}

TEST_F(StartedOnHosts, RanksMeetOverIpv6) {
  if (!hosts_->has_ipv6()) GTEST_SKIP() << "the kernel has no IPv6";
  const std::string address = testing_support::NetworkHosts::ipv6_address_of("a");
  start_ranks(training({"--mode=allreduce", "--collective=ring"}, "--steps=20"), address);
  const ProgramEnd end = first().wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(testing_support::text_of(first().output() / "config.toml"),
              HasSubstr("\nlisten-address = \"" + address + "\""));
  expect_others_end_with(0);
}

// What depends on the hosts is checked once all tasks have said where they are.
TEST_F(StartedOnHosts, OptionsOfSeveralHostsAreThoseOfTheTasks) {
  start_ranks(training({"--mode=ps", "--servers=1", "--consistency=sync", "--aggregation=host"}, "--steps=20"));
  const ProgramEnd end = first().wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("shm inside a host, tcp to servers"));
  expect_others_end_with(0);
  ranks_.clear();
  start_ranks(training({"--mode=allreduce", "--transport=shm"}));
  const ProgramEnd refused = first().wait();
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--transport=shm: connects processes of one host"));
  expect_others_end_with(0);
}

TEST_F(StartedOnHosts, RanksOfMpirunAreOneRun) {
  if (testing_support::kSanitized) GTEST_SKIP() << testing_support::kWhyNoMpi;
  const std::filesystem::path agent = folder_.path() / "agent";
  const std::string shell = hosts_->remote_shell().substr(std::string("--remote-shell=").size());
  std::ofstream(agent) << "#!/bin/sh\nhost=$1; shift\nexec " << shell << " \"$host\" \"$*\"\n";
  std::filesystem::permissions(agent, std::filesystem::perms::owner_all);
  Flags before = hosts_->named("home");
  before.insert(before.end(), {"env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "mpirun",
                               "--host", kA + ":2," + kB + ":2", "-np", "4", "--mca", "plm_rsh_agent", agent.string(),
                               "-x", "MASTER_ADDR=" + kA, "-x", "SYNCOPATE_SECRET_FILE=" + secret().string()});
  Program program(training({"--mode=allreduce", "--collective=hierarchical"}, "--steps=60"), before);
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("4 workers on 2 hosts"));
  EXPECT_THAT(testing_support::text_of(program.output() / "config.toml"), HasSubstr("\nhosts = \"localhost:2,b:2\""));
}

TEST_F(StartedOnHosts, AKilledProcessEndsTheRunAndAllTasks) {
  start_ranks(training({"--mode=allreduce"}));
  ASSERT_TRUE(first().wait_until_training(4));
  const pid_t worker = process_of_worker(3);
  ASSERT_GT(worker, 0);
  kill(worker, SIGKILL);
  const ProgramEnd end = first().wait(kDeadline);
  EXPECT_EQ(end.exit_code, 5);
  EXPECT_THAT(end.err, ContainsRegex("worker 3 \\(host b, pid [0-9]+; .*was killed by signal 9"));
  expect_others_end_with(0);
}

TEST_F(StartedOnHosts, TasksEndWithTheFirst) {
  start_ranks(training({"--mode=allreduce"}));
  ASSERT_TRUE(first().wait_until_training(4));
  first().signal(SIGKILL);
  EXPECT_EQ(first().wait(kDeadline).exit_code, 128 + SIGKILL);
  expect_others_end_with(5);
}

// A connection that is cut says nothing: what is over shows in the silence.
TEST_F(StartedOnHosts, ATaskThatIsCutOffEndsByItself) {
  start_ranks(training({"--mode=allreduce"}));
  ASSERT_TRUE(first().wait_until_training(4));
  hosts_->cut("b");
  const ProgramEnd end = first().wait(kDeadline);
  EXPECT_EQ(end.exit_code, 6) << end.err;
  EXPECT_EQ(ranks_[1]->wait(kDeadline).exit_code, 0);
  for (const std::size_t rank : {2, 3}) {
    const ProgramEnd cut = ranks_[rank]->wait(2 * kDeadline);
    EXPECT_EQ(cut.exit_code, 5) << cut.err;
    EXPECT_THAT(cut.err, HasSubstr("the process with rank 0 has ended or is out of reach"));
  }
  EXPECT_TRUE(first().all_gone_within(kDeadline));
}

}  // namespace
}  // namespace syncopate::experiments
