#include "experiments/lab/submit/slurm_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiments/config/typed_line.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string script_of(std::vector<const char*> flags, const std::string& program = "/opt/syncopate") {
  flags.insert(flags.begin(), {"submit", "--slurm"});
  const Result<CommandLine> line = parse(flags);
  EXPECT_TRUE(line.ok()) << line.status().message();
  return line.ok() ? slurm_script(*line, program) : "";
}

TEST(ASlurmScript, BecomesTheRunsCoordinator) {
  const std::string script = script_of({"--mode=ps", "--workers=3", "--servers=2"});
  EXPECT_THAT(script, StartsWith("#!/bin/sh\n# Made by: run_experiment submit --slurm --mode=ps"));
  EXPECT_THAT(script, HasSubstr("\n#SBATCH --job-name=syncopate --output=syncopate.out --open-mode=append\n"));
  EXPECT_THAT(script, HasSubstr("\n#SBATCH --nodes=1 --ntasks=5 --ntasks-per-node=5\n"));
  EXPECT_THAT(script, EndsWith("\nexec /opt/syncopate --mode=ps --workers=3 --launcher=slurm --servers=2\n"));
}

TEST(ASlurmScript, AsksForWhatAHostIsToHave) {
  const std::string script =
      script_of({"--name=train", "--nodes=2", "--partition=gpu", "--account=vision", "--cpus=7", "--memory=4GiB",
                 "--gpus=2", "--time-limit=5430s", "--mode=ps", "--workers=4", "--servers=2"});
  for (const char* directive :
       {"--job-name=train ", "--partition=gpu", "--account=vision", "--nodes=2 --ntasks=6 --ntasks-per-node=3",
        "--cpus-per-task=3", "--mem=4096M", "--gpus-per-node=2", "--time=90:30"}) {
    EXPECT_THAT(script, HasSubstr(directive));
  }
}

TEST(ASlurmScript, OfARunWithCheckpointsGoesOnWhenItIsStartedAgain) {
  const std::string script = script_of({"--name=long", "--mode=allreduce", "--checkpoint-every=30s", "--grace=20"});
  EXPECT_THAT(script, HasSubstr("\n#SBATCH --requeue --signal=B:TERM@50\n"));
  EXPECT_THAT(script, AllOf(HasSubstr(" --resume=auto"), HasSubstr(" --output=results/long")));
  const std::string other =
      script_of({"--mode=allreduce", "--checkpoint-every=30s", "--resume=results/first", "--output=results/second"});
  EXPECT_THAT(other, AllOf(HasSubstr(" --resume=results/first"), HasSubstr(" --output=results/second")));
}

TEST(ASlurmScript, OfARunWithoutCheckpointsIsNotStartedAgain) {
  EXPECT_THAT(script_of({"--mode=allreduce"}), AllOf(HasSubstr("#SBATCH --no-requeue\n"), Not(HasSubstr("--resume"))));
}

TEST(ASlurmScript, QuotesWhatAShellWouldRead) {
  const std::string script = script_of({"--mode=allreduce", "--data-dir=$(id) it's"}, "/opt/my programs/syncopate");
  EXPECT_THAT(script, HasSubstr("\nexec '/opt/my programs/syncopate' "));
  EXPECT_THAT(script, HasSubstr(R"('--data-dir=$(id) it'\''s')"));
}

TEST(ASlurmScript, OfALocalRunHasOneTask) {
  const std::string script = script_of({"--mode=local"});
  EXPECT_THAT(script, AllOf(HasSubstr("--nodes=1 --ntasks=1 --ntasks-per-node=1\n"), Not(HasSubstr("--launcher"))));
}

}  // namespace
}  // namespace syncopate::experiments
