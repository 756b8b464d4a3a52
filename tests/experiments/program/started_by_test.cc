// Runs whose processes somebody else has started.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "tests/faults/failing_run.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing_support::TemporaryFolder;

constexpr const char* kEnv = "/usr/bin/env";

// A program and the path where a shell finds it; empty if it is not installed.
std::string path_of_program(const std::string& name, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    if (std::filesystem::exists(folder + "/" + name)) return folder + "/" + name;
  }
  return "";
}

// The number of workers that the run's record has; 0 if there is none.
std::size_t workers_in(const Program& program) {
  const std::string record = testing_support::text_of(program.output() / "config.toml");
  const std::size_t found = record.find("\nworkers = ");
  return found == std::string::npos ? 0 : static_cast<std::size_t>(std::stoi(record.substr(found + 11)));
}

// The processes of one run, started one by one with the variables of a launcher, as that would start them.
class StartedTasks {
 public:
  StartedTasks(const Flags& flags, const std::vector<Flags>& variables) {
    for (const Flags& of_task : variables) {
      tasks_.push_back(std::make_unique<Program>(flags + Flags{"--output=" + (folder_.path() / "run").string()},
                                                 Flags{kEnv} + of_task));
    }
  }

  Program& operator[](std::size_t rank) { return *tasks_[rank]; }
  std::vector<int> exit_codes() {
    std::vector<int> codes;
    for (const auto& task : tasks_) codes.push_back(task->wait(kDeadline + std::chrono::seconds(30)).exit_code);
    return codes;
  }

 private:
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<Program>> tasks_;
};

std::vector<Flags> as_torchrun(int size, const std::string& job) {
  std::vector<Flags> variables;
  for (int rank = 0; rank < size; ++rank) {
    variables.push_back({fmt::format("RANK={}", rank), fmt::format("WORLD_SIZE={}", size),
                         fmt::format("LOCAL_RANK={}", rank), fmt::format("LOCAL_WORLD_SIZE={}", size),
                         "MASTER_ADDR=localhost", "MASTER_PORT=29500",
                         fmt::format("TORCHELASTIC_RUN_ID={}-{}", job, getpid())});
  }
  return variables;
}

TEST(StartedBy, EachProcessBecomesAWorkerOrAServerOfOneRun) {
  StartedTasks tasks(training({"--mode=ps", "--servers=1"}, "--steps=100"), as_torchrun(3, "ps"));
  EXPECT_THAT(tasks.exit_codes(), testing::Each(0));
  EXPECT_EQ(workers_in(tasks[0]), 2u);
  EXPECT_TRUE(std::filesystem::exists(tasks[0].output() / "logs" / "server-0.log"));
}

TEST(StartedBy, TheSameCurveIsLearntAsByProcessesOfItsOwn) {
  const Flags flags = training({"--mode=allreduce", "--collective=ring"}, "--steps=40");
  StartedTasks tasks(flags, as_torchrun(2, "curve"));
  EXPECT_THAT(tasks.exit_codes(), testing::Each(0));
  Program own(flags + Flags{"--workers=2"});
  EXPECT_EQ(own.wait().exit_code, 0);
  ASSERT_FALSE(own.weights().empty());
  EXPECT_EQ(tasks[0].weights(), own.weights());
}

// In step with each other, so that every worker comes to that step.
TEST(StartedBy, FaultsStrikeInOtherTasks) {
  StartedTasks tasks(
      training({"--mode=ps", "--servers=1", "--consistency=sync", "--fault=kill:worker1@step50"}, "--steps=200"),
      as_torchrun(3, "faults"));
  EXPECT_THAT(tasks.exit_codes(), testing::Each(0));
  EXPECT_THAT(tasks[0].errors(), HasSubstr("fault: killed worker 1 at step 50"));
  EXPECT_THAT(tasks[0].errors(), HasSubstr("was killed by signal 9 (Killed); 1 worker goes on"));
}

// The variables of tasks, as in "ps 0", of a cluster with a chief, a worker and so many ps.
std::vector<Flags> as_tf_config(int servers, const std::vector<const char*>& tasks) {
  const int port = 20000 + getpid() % 10000;  // names the run; nobody listens there
  std::string ps;
  for (int server = 0; server < servers; ++server) {
    ps += fmt::format(R"({}"localhost:{}")", server == 0 ? "" : ", ", 2 + server);
  }
  std::vector<Flags> variables;
  for (const std::string task : tasks) {
    const std::size_t blank = task.find(' ');
    variables.push_back({fmt::format(R"(TF_CONFIG={{"cluster": {{"chief": ["localhost:{}"], "worker": ["localhost:1"],
      "ps": [{}]}}, "task": {{"type": "{}", "index": {}}}}})",
                                     port, ps, task.substr(0, blank), task.substr(blank + 1))});
  }
  return variables;
}

TEST(StartedBy, TfConfigSaysWhichTaskIsWhat) {
  StartedTasks tasks(training({"--mode=ps"}, "--steps=100"), as_tf_config(1, {"chief 0", "worker 0", "ps 0"}));
  EXPECT_THAT(tasks.exit_codes(), testing::Each(0));
  EXPECT_EQ(workers_in(tasks[0]), 2u);
}

TEST(StartedBy, MpirunStartsOneRun) {
  const std::string mpirun = path_of_program("mpirun", {"/usr/bin", "/usr/local/bin"});
  if (mpirun.empty()) GTEST_SKIP() << "no mpirun: apt-get install openmpi-bin";
  Program program(training({"--mode=allreduce"}, "--steps=100"), {mpirun, "--oversubscribe", "-np", "3"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(workers_in(program), 3u);
}

TEST(StartedBy, TorchrunStartsOneRun) {
  const char* const venv = std::getenv("SYNCOPATE_VENV");
  const std::string torchrun =
      path_of_program("torchrun", {venv == nullptr ? "" : std::string(venv) + "/bin", "/usr/local/bin"});
  // Debian's, of PyTorch 1.13, fails with programs that are not Python's.
  if (torchrun.empty()) GTEST_SKIP() << "no torchrun: pip install torch, and SYNCOPATE_VENV for where";
  Program program(training({"--mode=ps", "--servers=1"}, "--steps=100"),
                  {torchrun, "--no_python", "--nproc_per_node=3"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(workers_in(program), 2u);
}

// Kills one of three tasks during training and returns the exit codes of all.
std::vector<int> kill_task(std::size_t rank, const std::string& job, std::string& verdict) {
  StartedTasks tasks(training({"--mode=allreduce"}), as_torchrun(3, job));
  if (!tasks[0].wait_until_training(3)) return {};
  kill(tasks[rank].pid(), SIGKILL);
  std::vector<int> codes = tasks.exit_codes();
  verdict = tasks[0].errors();
  EXPECT_TRUE(tasks[0].all_gone_within(kDeadline));
  return codes;
}

TEST(StartedBy, AKilledTaskEndsTheOthers) {
  std::string verdict;
  EXPECT_THAT(kill_task(1, "rank", verdict), testing::ElementsAre(5, 137, 0));
  EXPECT_THAT(verdict, HasSubstr("run_experiment: worker 1 (host "));
}

TEST(StartedBy, AKilledCoordinatorEndsTheOthers) {
  std::string verdict;
  EXPECT_THAT(kill_task(0, "coordinator", verdict), testing::ElementsAre(137, 5, 5));
}

TEST(StartedBy, ASignalToAllEndsTheRunInOrder) {
  StartedTasks tasks(training({"--mode=ps", "--servers=1"}), as_torchrun(3, "signal"));
  ASSERT_TRUE(tasks[0].wait_until_training(2));
  for (std::size_t rank : {2u, 1u, 0u}) kill(tasks[rank].pid(), SIGTERM);
  // As Slurm does, which signals all processes below a task.
  for (const auto& process : tasks[0].processes()) kill(process.pid, SIGTERM);
  EXPECT_THAT(tasks.exit_codes(), testing::ElementsAre(130, 0, 0));
  EXPECT_THAT(tasks[0].errors(), HasSubstr("interrupted at step"));
  EXPECT_TRUE(tasks[0].all_gone_within(kDeadline));
}

TEST(StartedBy, ATaskThatDoesNotComeIsNamed) {
  const std::vector<Flags> variables = as_torchrun(3, "absent");
  StartedTasks tasks(training({"--mode=allreduce"}, "--steps=20", 2), {variables[0], variables[2]});
  EXPECT_THAT(tasks.exit_codes(), testing::ElementsAre(6, testing::Ne(0)));
  EXPECT_THAT(tasks[0].errors(), HasSubstr("rank 1 of the 3 that torchrun has started has not come within 2 s"));
}

TEST(StartedBy, TheFirstTaskAloneSaysWhatIsWrong) {
  StartedTasks tasks({"--mode=ps", "--servers=1", "--workers=3"}, as_torchrun(2, "wrong"));
  EXPECT_THAT(tasks.exit_codes(), testing::ElementsAre(2, 2));
  EXPECT_EQ(
      tasks[0].errors(),
      "run_experiment: --workers=3: torchrun has started 2 processes, of which 1 are servers; use --workers=1, or "
      "leave it out\n");
  EXPECT_EQ(tasks[1].errors(), "");
}

// Each has a log of its own there.
TEST(StartedBy, EachTaskOfTfConfigSaysWhyItEnds) {
  const std::vector<Flags> variables = as_tf_config(2, {"chief 0", "worker 0", "ps 0", "ps 1"});
  StartedTasks allreduce({"--mode=allreduce"}, variables);
  EXPECT_THAT(allreduce.exit_codes(), testing::Each(2));
  StartedTasks others({"--mode=ps", "--servers=1"}, variables);
  EXPECT_THAT(others.exit_codes(), testing::Each(2));
  for (std::size_t rank = 0; rank < variables.size(); ++rank) {
    EXPECT_EQ(allreduce[rank].errors(),
              "run_experiment: --mode=allreduce: TF_CONFIG has 2 ps; use --mode=ps or --mode=hybrid\n");
    EXPECT_EQ(others[rank].errors(),
              "run_experiment: --servers=1: TF_CONFIG has 2 ps; use --servers=2, or leave it out\n");
  }
}

TEST(StartedBy, AnEvaluatorOfTfConfigSaysThatItHasNothingToDo) {
  // What these come to with the default of workers, which the cluster has more of, is none of its business.
  StartedTasks tasks({"--mode=ps", "--consistency=sync", "--backup-workers=2"}, as_tf_config(1, {"evaluator 0"}));
  EXPECT_THAT(tasks.exit_codes(), testing::ElementsAre(0));
  EXPECT_THAT(tasks[0].errors(), HasSubstr("there is nothing to do here"));
}

TEST(StartedBy, NoWorkerIsNoRun) {
  Program program({"--mode=ps"}, {kEnv, R"(TF_CONFIG={"cluster": {"ps": ["a:1", "b:1"]},
    "task": {"type": "ps", "index": 1}})"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_EQ(end.err,
            "run_experiment: TF_CONFIG: cluster has no chief and no worker; say whom to believe, or none, with "
            "--started-by\n");
}

// On two hosts, of which each has a terminal: ranks 0 and 2 are the first there.
TEST(StartedBy, TheFirstTaskOfEachHostSaysWhatIsWrong) {
  std::vector<Flags> variables;
  for (int rank = 0; rank < 4; ++rank) {
    variables.push_back({fmt::format("RANK={}", rank), "WORLD_SIZE=4", fmt::format("LOCAL_RANK={}", rank % 2),
                         "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=node1", "MASTER_PORT=29500",
                         "SYNCOPATE_SECRET_FILE=/nowhere"});
  }
  StartedTasks tasks({"--mode=allreduce", "--workers=3"}, variables);
  EXPECT_THAT(tasks.exit_codes(), testing::Each(2));
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(tasks[rank].errors(), rank % 2 != 0 ? ""
                                                  : "run_experiment: --workers=3: torchrun has started 4 processes; "
                                                    "use --workers=4, or leave it out\n");
  }
}

TEST(StartedBy, NobodyIfThePersonSaysSo) {
  Program program(training({"--mode=allreduce", "--workers=2", "--started-by=none"}, "--steps=20"),
                  Flags{kEnv} + as_torchrun(3, "none")[1]);
  EXPECT_EQ(program.wait().exit_code, 0);
  EXPECT_EQ(workers_in(program), 2u);
}

}  // namespace
}  // namespace syncopate::experiments
