// Runs under a real Slurm, which starts their processes, or whose hosts they take.
#include "tests/support/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "experiments/checkpoint/checkpoint_store.h"
#include "tests/faults/failing_run.h"
#include "tests/support/build_paths.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing_support::Slurm;
using testing_support::text_of;

const Flags kOneHost{"srun", "--nodes=1"};

class SlurmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = Slurm::missing(); !missing.empty()) GTEST_SKIP() << missing;
    slurm_ = std::make_unique<Slurm>();
    ASSERT_TRUE(slurm_->is_up());
  }

  Flags srun(const Flags& more) { return slurm_->before(kOneHost + more); }

  // Hands a script to sbatch that becomes the program, and returns the job's number.
  std::string submit(const Flags& directives, const Flags& flags) {
    std::ofstream script(slurm_->folder() / "job.sh");
    script << "#!/bin/sh\n";
    for (const std::string& directive : directives) script << "#SBATCH " << directive << "\n";
    script << "exec " << testing_support::syncopate_program()
           << " --device=cpu --data-dir=" << testing_support::shared_data_dir() << " --output=" << output().string();
    for (const std::string& flag : flags) script << " " << flag;
    script << "\n";
    script.close();
    return slurm_->output_of("sbatch --parsable --open-mode=append --output=" +
                             (slurm_->folder() / "out.txt").string() + " " + (slurm_->folder() / "job.sh").string());
  }

  std::string state_of(const std::string& job) {
    return slurm_->output_of("squeue --noheader --format=%T --job=" + job);
  }
  std::string facts_of(const std::string& job) { return slurm_->output_of("scontrol show job " + job); }

  // Waits until the job is over, and returns its exit code and signal as Slurm says them: "0:0".
  std::string end_of(const std::string& job) {
    const TimePoint deadline = SteadyClock().now() + std::chrono::seconds(150) * testing_support::kSlowness;
    std::string facts;
    while (SteadyClock().now() < deadline) {
      facts = facts_of(job);
      for (const char* over : {"JobState=COMPLETED", "JobState=FAILED", "JobState=CANCELLED", "JobState=TIMEOUT"}) {
        if (facts.find(over) == std::string::npos) continue;
        const std::size_t code = facts.find(" ExitCode=") + 10;
        return facts.substr(code, facts.find_first_of(" \n", code) - code);
      }
      usleep(100'000);
    }
    return "not over: " + facts;
  }

  bool wait_for(const std::function<bool()>& condition) {
    const TimePoint deadline = SteadyClock().now() + std::chrono::seconds(60) * testing_support::kSlowness;
    while (!condition()) {
      if (SteadyClock().now() > deadline) return false;
      usleep(20'000);
    }
    return true;
  }

  std::string printed() const { return text_of(slurm_->folder() / "out.txt"); }
  std::filesystem::path output() const { return slurm_->folder() / "run"; }

  std::unique_ptr<Slurm> slurm_;
};

TEST_F(SlurmTest, SrunStartsOneRun) {
  Program program(training({"--mode=ps", "--servers=2"}, "--steps=100"), srun({"--ntasks=4"}));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(text_of(program.output() / "config.toml"), HasSubstr("\nworkers = 2"));
}

TEST_F(SlurmTest, SrunStartsOneRunOnSeveralNodes) {
  const std::filesystem::path secret = slurm_->folder() / "secret";
  std::ofstream(secret) << std::string(32, 's');
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
  // No name server knows this Slurm's nodes.
  Flags before = slurm_->before({"env", "SYNCOPATE_SECRET_FILE=" + secret.string(), "MASTER_ADDR=127.0.0.1", "srun",
                                 "--nodes=2", "--ntasks=4", "--ntasks-per-node=2"});
  Program program(training({"--mode=ps", "--servers=1"}, "--steps=100"), before);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(text_of(program.output() / "config.toml"), HasSubstr("\nworkers = 3"));
}

TEST_F(SlurmTest, AKilledProcessOfSrunEndsTheRun) {
  Program program(training({"--mode=allreduce"}), srun({"--ntasks=3"}));
  ASSERT_TRUE(program.wait_until_training(3));
  const pid_t worker = slurm_->process("worker", 2);
  ASSERT_GT(worker, 0);
  kill(worker, SIGKILL);
  const ProgramEnd end = program.wait(kDeadline + std::chrono::seconds(30));
  EXPECT_EQ(end.exit_code, 5) << end.err;
  EXPECT_THAT(end.err, HasSubstr("worker 2 (host"));
}

TEST_F(SlurmTest, ScancelEndsARunInOrder) {
  Program program(training({"--mode=allreduce"}), srun({"--ntasks=3"}));
  ASSERT_TRUE(program.wait_until_training(3));
  const std::string job = slurm_->output_of("squeue --noheader --format=%A");
  slurm_->output_of("scancel --signal=TERM " + job);
  const ProgramEnd end = program.wait(kDeadline + std::chrono::seconds(30));
  EXPECT_EQ(end.exit_code, 130) << end.err;
  EXPECT_THAT(end.err, HasSubstr("interrupted at step"));
}

TEST_F(SlurmTest, ARunTakesTheHostsOfItsAllocation) {
  const std::string job =
      submit({"--nodes=2", "--ntasks=4", "--ntasks-per-node=2"},
             training({"--mode=ps", "--servers=1", "--launcher=slurm", "--listen-address=127.0.0.1"}, "--steps=100"));
  EXPECT_EQ(end_of(job), "0:0") << printed();
  const std::string record = text_of(output() / "config.toml");
  EXPECT_THAT(record, HasSubstr("\nlauncher = \"slurm\""));
  EXPECT_THAT(record, HasSubstr("\nhosts = \"localhost:1,node2:2\""));
  EXPECT_THAT(record, HasSubstr("\nworkers = 3"));
}

TEST_F(SlurmTest, AKilledProcessOfAnotherHostEndsTheRun) {
  const std::string job = submit(
      {"--nodes=2", "--ntasks=2"},
      training({"--mode=allreduce", "--launcher=slurm", "--listen-address=127.0.0.1", "--environment=PASSED_ON=far"}));
  ASSERT_TRUE(wait_for([&] { return text_of(output() / "steps.csv").size() > 1000; })) << printed();
  const pid_t worker = slurm_->process("worker", 1);
  ASSERT_GT(worker, 0);
  EXPECT_THAT(text_of(fmt::format("/proc/{}/environ", worker)), HasSubstr("PASSED_ON=far"));
  kill(worker, SIGKILL);
  EXPECT_EQ(end_of(job), "5:0") << printed();
  EXPECT_THAT(printed(), HasSubstr("worker 1 (host"));
}

TEST_F(SlurmTest, ARequeuedRunGoesOnFromItsCheckpoint) {
  const std::string job = submit(
      {"--nodes=1", "--ntasks=2", "--requeue"},
      training({"--mode=allreduce", "--launcher=slurm", "--checkpoint-every=50", "--resume=auto"}, "--steps=12000"));
  const CheckpointStore checkpoints((output() / "checkpoints").string());
  ASSERT_TRUE(wait_for([&] { return !checkpoints.steps().empty(); })) << printed();
  EXPECT_EQ(slurm_->output_of("scontrol requeue " + job), "");
  // A requeued job may begin only after a while.
  wait_for([&] { return state_of(job) == "PENDING"; });
  slurm_->output_of("scontrol update JobId=" + job + " StartTime=now");
  EXPECT_EQ(end_of(job), "0:0") << printed();
  EXPECT_TRUE(std::filesystem::exists(output() / "before-1")) << printed();
  EXPECT_THAT(text_of(output() / "summary.json"), HasSubstr("\"resumed_from\"")) << printed();
}

TEST_F(SlurmTest, ASignalBeforeTheTimeLimitEndsARunInOrder) {
  const std::string job = submit({"--nodes=1", "--ntasks=2", "--time=1", "--signal=B:TERM@50"},
                                 training({"--mode=allreduce", "--launcher=slurm"}));
  EXPECT_EQ(end_of(job), "130:0") << printed();
  EXPECT_THAT(printed(), HasSubstr("interrupted at step"));
}

// What submit prints is handed to sbatch as it is.
TEST_F(SlurmTest, RunsWhatSubmitHasPrintedAndGoesOnWithTheSameScript) {
  const Flags run = training({"--mode=ps", "--workers=3", "--servers=1", "--listen-address=127.0.0.1", "--device=cpu",
                              "--data-dir=" + testing_support::shared_data_dir(), "--checkpoint-every=1000000000",
                              "--output=" + output().string()});
  const ProgramEnd submit = testing_support::run_program(
      Flags{"submit", "--slurm", "--nodes=2", "--name=printed", "--cpus=2", "--time-limit=10m"} + run);
  ASSERT_EQ(submit.exit_code, 0) << submit.err;
  const std::filesystem::path script = slurm_->folder() / "printed.sbatch";
  std::ofstream(script) << submit.out;
  const auto start = [&] {
    return slurm_->output_of("sbatch --parsable --chdir=" + slurm_->folder().string() + " " + script.string());
  };
  const auto out = [&] { return text_of(slurm_->folder() / "printed.out"); };
  const auto trains = [&] { return text_of(output() / "steps.csv").size() > 1000; };
  const std::string first = start();
  ASSERT_TRUE(wait_for(trains)) << first << out();
  EXPECT_EQ(slurm_->output_of("scancel --batch --signal=TERM " + first), "");
  EXPECT_EQ(end_of(first), "143:0") << out();
  EXPECT_THAT(text_of(output() / "config.toml"), HasSubstr("\nhosts = \"localhost:1,node2:2\""));
  const std::string second = start();
  // The steps of the first run go to their place before the second has any.
  const auto has_moved = [&] { return std::filesystem::exists(output() / "before-1" / "steps.csv"); };
  ASSERT_TRUE(wait_for([&] { return has_moved() && trains(); })) << out();
  EXPECT_EQ(slurm_->output_of("scancel --batch --signal=TERM " + second), "");
  EXPECT_EQ(end_of(second), "143:0") << out();
  EXPECT_THAT(text_of(output() / "summary.json"), HasSubstr("\"resumed_from\"")) << out();
}

TEST_F(SlurmTest, AProgramOfOnesOwnRunsOnTheHostsThatSubmitAsksFor) {
  const ProgramEnd submit = testing_support::run_program(
      {"submit", "--slurm", "--nodes=2", "--name=own", "--mode=ps", "--servers=2", "--workers=4",
       "--listen-address=127.0.0.1", "--output=" + output().string(), "--", SYNCOPATE_OWN_PROGRAM, "50"});
  ASSERT_EQ(submit.exit_code, 0) << submit.err;
  EXPECT_THAT(submit.out, HasSubstr("--nodes=2 --ntasks=4 --ntasks-per-node=2"));  // it starts its servers itself
  const std::filesystem::path script = slurm_->folder() / "own.sbatch";
  std::ofstream(script) << submit.out;
  const std::string job =
      slurm_->output_of("sbatch --parsable --chdir=" + slurm_->folder().string() + " " + script.string());
  EXPECT_EQ(end_of(job), "0:0") << text_of(slurm_->folder() / "own.out");
  EXPECT_THAT(text_of(output() / "config.toml"), HasSubstr("\nhosts = \"localhost:2,node2:2\""));
  const std::string steps = text_of(output() / "steps.csv");
  for (int worker = 0; worker < 4; ++worker) {
    EXPECT_THAT(steps, HasSubstr(fmt::format("\n0,{},", worker))) << "its steps came here";
  }
}

// Slurm sends the signal some time before it would kill.
TEST_F(SlurmTest, ASignalBeforeTheTimeLimitLeavesALastCheckpoint) {
  const std::string job = submit({"--nodes=2", "--ntasks=2", "--time=2", "--signal=B:TERM@90"},
                                 training({"--mode=allreduce", "--launcher=slurm", "--listen-address=127.0.0.1",
                                           "--checkpoint-every=1000000000", "--grace=40", "--resume=auto"}));
  EXPECT_EQ(end_of(job), "143:0") << printed();
  EXPECT_THAT(printed(), HasSubstr("ended by SIGTERM; a last checkpoint is kept, of step "));
  EXPECT_EQ(CheckpointStore((output() / "checkpoints").string()).steps().size(), 1u);
}

// Slurm sends it to all processes of the job, on both hosts, and kills what is left after its KillWait.
TEST_F(SlurmTest, ACancelledJobLeavesALastCheckpoint) {
  const std::string job =
      submit({"--nodes=2", "--ntasks=3"}, training({"--mode=ps", "--launcher=slurm", "--listen-address=127.0.0.1",
                                                    "--checkpoint-every=1000000000", "--grace=4", "--resume=auto"}));
  ASSERT_TRUE(wait_for([&] { return text_of(output() / "steps.csv").size() > 1000; })) << printed();
  slurm_->output_of("scancel " + job);
  EXPECT_TRUE(wait_for([&] { return printed().find("run_experiment: ended by SIGTERM") != std::string::npos; }))
      << printed();
  EXPECT_EQ(CheckpointStore((output() / "checkpoints").string()).steps().size(), 1u) << printed();
}

TEST_F(SlurmTest, WithoutAnAllocationTheLauncherSaysSo) {
  Program program({"--mode=allreduce", "--launcher=slurm"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("--launcher=slurm: this is not in an allocation of Slurm's"));
}

}  // namespace
}  // namespace syncopate::experiments
