#include "experiments/config/submit_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiments/config/typed_line.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kJob = "--kubernetes=job";
constexpr const char* kImage = "--image=registry.example/team/syncopate:1.0";

TEST(ASubmitLine, SaysWhatAHostIsToHaveAndWhichRunItStarts) {
  const Result<CommandLine> line =
      parse({"submit", kJob, kImage, "--name=train", "--namespace=ml", "--slots=2", "--cpus=1.5", "--memory=4GiB",
             "--gpus=2", "--time-limit=2h", "--volume-claim=shared.data", "--mode=ps", "--workers=5", "--servers=2"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->action, CommandLine::Action::kSubmit);
  const Submission& submission = *line->submission;
  EXPECT_EQ(submission.form, KubernetesForm::kJob);
  EXPECT_EQ(submission.image, "registry.example/team/syncopate:1.0");
  EXPECT_EQ(submission.name, "train");
  EXPECT_EQ(submission.kube_namespace, "ml");
  EXPECT_EQ(submission.volume_claim, "shared.data");
  EXPECT_EQ(submission.thousandths_of_cpus, 1500);
  EXPECT_EQ(submission.memory_bytes, 4ll << 30);
  EXPECT_EQ(submission.gpus, 2);
  EXPECT_EQ(submission.time_limit_seconds, 7200);
  EXPECT_EQ(line->config.servers, 2);
  EXPECT_THAT(line->config.hosts,
              ElementsAre(HostSlots{"localhost", 2}, HostSlots{"train-1.train", 2}, HostSlots{"train-2.train", 1}));
  EXPECT_FALSE(line->given.contains("hosts"));
  EXPECT_THAT(line->typed, StartsWith("run_experiment submit --kubernetes=job"));
}

TEST(ASubmitLine, NamesTheHostsOfAnMpiJobAsItsOperatorDoes) {
  const Result<CommandLine> line = parse({"submit", "--kubernetes=mpijob", kImage, "--workers=2", "--mode=allreduce"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(line->config.hosts,
              ElementsAre(HostSlots{"syncopate-worker-0.syncopate", 1}, HostSlots{"syncopate-worker-1.syncopate", 1}));
}

TEST(ASubmitLine, NeedsATargetAndAnImage) {
  EXPECT_THAT(refusal({"submit", kImage}), HasSubstr("--kubernetes or --slurm is missing"));
  EXPECT_THAT(refusal({"submit", kJob}), HasSubstr("--image is missing"));
  EXPECT_THAT(refusal({"submit", "--kubernetes=helm", kImage}),
              StartsWith("--kubernetes=helm: must be job, mpijob or trainer"));
  EXPECT_THAT(refusal({"submit", kJob, kImage, kImage}), HasSubstr("given 2 times"));
}

TEST(ASubmitLine, RefusesNamesThatDnsCannotHave) {
  const std::string longest(40, 'a');
  EXPECT_EQ(refusal({"submit", kJob, kImage, ("--name=" + longest).c_str()}), "accepted");
  for (const std::string& name :
       std::vector<std::string>{"Train", "9lives", "-a", "a-", "a.b", "a_b", "ä", longest + "a"}) {
    const std::string option = "--name=" + name;
    EXPECT_THAT(refusal({"submit", kJob, kImage, option.c_str()}), StartsWith(option)) << name;
  }
  EXPECT_EQ(refusal({"submit", kJob, kImage, "--namespace=9lives"}), "accepted")
      << "a namespace may begin with a digit";
  for (const char* option : {"--namespace=a.b", "--namespace=-a", "--volume-claim=a..b", "--volume-claim=.a",
                             "--volume-claim=A", "--image=a b", "--image=\"a\""}) {
    std::vector<const char*> line = {"submit", kJob, option};
    if (!std::string_view(option).starts_with("--image")) line.push_back(kImage);
    EXPECT_THAT(refusal(line), HasSubstr(": must be ")) << option;
  }
}

TEST(ASubmitLine, RefusesAmountsThatNoHostHas) {
  for (const char* option :
       {"--cpus=0", "--cpus=-1", "--cpus=nan", "--cpus=2000", "--cpus=500m", "--memory=4", "--memory=4Gi",
        "--memory=0GiB", "--memory=99999999999GiB", "--memory=1.5B", "--memory=1kB", "--gpus=0", "--gpus=65",
        "--slots=0", "--slots=1025", "--time-limit=5", "--time-limit=0s", "--time-limit=400d"}) {
    EXPECT_THAT(refusal({"submit", kJob, kImage, option}), StartsWith(std::string(option) + ": must be ")) << option;
  }
}

TEST(ASubmitLine, LeavesHostsToTheScheduler) {
  EXPECT_THAT(refusal({"submit", kJob, kImage, "--hosts=a,b"}), StartsWith("--hosts=a,b: submit names hosts"));
  EXPECT_THAT(refusal({"submit", kJob, kImage, "--dry-run"}), StartsWith("--dry-run:"));
  EXPECT_THAT(refusal({"submit", kJob, kImage, "--plot"}), StartsWith("--plot:"));
}

TEST(ASubmitLine, RefusesARunThatCouldNotStartThere) {
  EXPECT_THAT(refusal({"submit", kJob, kImage, "--mode=ps", "--transport=shm"}), StartsWith("--transport=shm:"));
  EXPECT_THAT(refusal({"submit", kJob, kImage, "--cluster=simulated"}), StartsWith("--cluster=simulated:"));
  EXPECT_THAT(refusal({"submit", kJob, kImage, "--workers=1025"}), HasSubstr("1025"));
  EXPECT_THAT(refusal({"submit", "--kubernetes=mpijob", kImage, "--mode=allreduce", "--launcher=mpirun"}),
              StartsWith("--launcher=mpirun:"));
  EXPECT_THAT(refusal({"submit", kJob, kImage, "--mode=ps", "--device=cuda"}), HasSubstr("as in --gpus=1"));
  EXPECT_THAT(refusal({"submit", kJob, kImage, "--mode=allreduce", "--servers=2"}), StartsWith("--servers=2:"));
  EXPECT_THAT(refusal({"submit", "--kubernetes=mpijob", kImage, "--mode=local"}), HasSubstr("use --kubernetes=job"));
}

TEST(ASubmitLine, MakesATaskOfSlurmsOfEachWorkerAndServer) {
  const Result<CommandLine> line = parse({"submit", "--slurm", "--nodes=2", "--partition=long,gpu", "--account=vision",
                                          "--time-limit=90s", "--mode=ps", "--workers=3", "--servers=2"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  const Submission& submission = *line->submission;
  EXPECT_EQ(submission.target, SubmitTarget::kSlurm);
  EXPECT_EQ(submission.nodes, 2);
  EXPECT_EQ(submission.partition, "long,gpu");
  EXPECT_EQ(submission.account, "vision");
  EXPECT_EQ(tasks_of(line->config), 5);
  EXPECT_EQ(line->config.launcher, LauncherKind::kSlurm);
}

TEST(ASubmitLine, RefusesWhatSlurmDoesNotTake) {
  EXPECT_THAT(refusal({"submit", "--slurm", kJob, kImage}), StartsWith("--slurm: not beside --kubernetes"));
  EXPECT_THAT(refusal({"submit", "--slurm", kImage}), HasSubstr("has an effect only with --kubernetes"));
  EXPECT_THAT(refusal({"submit", "--slurm", "--slots=2"}), StartsWith("--slots=2: has an effect only with"));
  EXPECT_THAT(refusal({"submit", kJob, kImage, "--nodes=2"}), StartsWith("--nodes=2: has an effect only with --slurm"));
  EXPECT_THAT(refusal({"submit", "--slurm", "--nodes=3", "--mode=allreduce", "--workers=2"}), StartsWith("--nodes=3:"));
  EXPECT_THAT(refusal({"submit", "--slurm", "--mode=allreduce", "--cpus=1.5"}), StartsWith("--cpus=1.5:"));
  EXPECT_THAT(refusal({"submit", "--slurm", "--mode=allreduce", "--launcher=mpirun"}),
              StartsWith("--launcher=mpirun:"));
  EXPECT_THAT(refusal({"submit", "--slurm", "--mode=allreduce", "--hosts=a"}), StartsWith("--hosts=a:"));
  EXPECT_THAT(refusal({"submit", "--slurm", "--mode=ps", "--device=cuda"}), HasSubstr("as in --gpus=1"));
  // A program starts its servers itself: tasks are workers alone.
  EXPECT_THAT(
      refusal({"submit", "--slurm", "--nodes=3", "--mode=ps", "--servers=2", "--workers=2", "--", "python", "a.py"}),
      StartsWith("--nodes=3:"));
  for (const char* option :
       {"--nodes=0", "--nodes=1001", "--partition=a b", "--partition=-p", "--account=$(id)", "--account=a\nb"}) {
    EXPECT_THAT(refusal({"submit", "--slurm", "--mode=allreduce", option}), HasSubstr(": must be ")) << option;
  }
}

TEST(ASubmitLine, GivesAProgramOfOnesOwnToTheTrainerAlone) {
  EXPECT_THAT(refusal({"submit", kJob, kImage, "--", "python", "train.py"}), HasSubstr("use --kubernetes=trainer"));
  EXPECT_THAT(refusal({"submit", "--kubernetes=trainer", kImage}), HasSubstr("as in -- python train.py"));
  EXPECT_THAT(refusal({"submit", "--kubernetes=trainer", kImage, "--mode=allreduce", "--workers=5", "--slots=2", "--",
                       "python", "a.py"}),
              StartsWith("--workers=5:"));
  const Result<CommandLine> line = parse({"submit", "--kubernetes=trainer", kImage, "--mode=allreduce", "--workers=4",
                                          "--slots=2", "--", "python", "train.py"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(line->config.command, ElementsAre("python", "train.py"));
  EXPECT_THAT(line->config.hosts,
              ElementsAre(HostSlots{"syncopate-node-0-0.syncopate", 2}, HostSlots{"syncopate-node-0-1.syncopate", 2}));
}

}  // namespace
}  // namespace syncopate::experiments
