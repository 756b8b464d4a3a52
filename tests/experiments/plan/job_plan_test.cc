#include "experiments/plan/job_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Key;
using testing::Not;
using testing::Pair;

std::vector<std::string> names(const JobPlan& plan) {
  std::vector<std::string> result;
  for (const ProcessSpec& spec : plan.processes) result.push_back(spec.name());
  return result;
}

JobPlan plan_of(Mode mode, int workers, int servers) {
  RunConfig config;
  config.mode = mode;
  config.workers = workers;
  config.servers = servers;
  return make_plan(config, "run-7", "box");
}

TEST(JobPlan, HasOneWorkerAndTheEvaluatorUnderLocal) {
  EXPECT_THAT(names(plan_of(Mode::kLocal, 1, 5)), ElementsAre("worker 0", "evaluator"));
}

TEST(JobPlan, HasServersOnlyUnderPs) {
  EXPECT_THAT(names(plan_of(Mode::kPs, 2, 2)),
              ElementsAre("server 0", "server 1", "worker 0", "worker 1", "evaluator"));
  EXPECT_THAT(names(plan_of(Mode::kAllreduce, 3, 2)), ElementsAre("worker 0", "worker 1", "worker 2", "evaluator"));
  EXPECT_EQ(count_of(plan_of(Mode::kPs, 4, 3), Role::kServer), 3);
  EXPECT_EQ(count_of(plan_of(Mode::kPs, 4, 3), Role::kWorker), 4);
}

TEST(JobPlan, ShowsRoleRankAndRunInTheCommandLine) {
  const ProcessSpec spec = plan_of(Mode::kAllreduce, 2, 1).processes[1];
  EXPECT_THAT(spec.arguments, ElementsAre("--role=worker", "--rank=1", "--run=run-7"));
  EXPECT_THAT(spec.environment, ElementsAre(Pair("OMP_NUM_THREADS", "1")));
}

TEST(JobPlan, PutsWorkersOnGpusInTurns) {
  RunConfig config;
  config.mode = Mode::kPs;
  config.workers = 3;
  config.device = DeviceKind::kCuda;
  const JobPlan plan = make_plan(config, "run-7", "box", 2);
  EXPECT_EQ(plan.processes[0].gpu, std::nullopt);  // the server
  for (int rank = 0; rank < 3; ++rank) {
    const ProcessSpec& worker = plan.processes[static_cast<std::size_t>(1 + rank)];
    EXPECT_EQ(worker.gpu, rank % 2);
    EXPECT_EQ(worker.arguments.back(), fmt::format("--gpu={}", rank % 2));
    EXPECT_EQ(program_of(worker, "bin/syncopate"), "bin/syncopate_gpu");
  }
  EXPECT_EQ(program_of(plan.processes[4], "bin/syncopate"), "bin/syncopate");  // the evaluator
}

TEST(JobPlan, HoldsNcclToTheRingAndSeparatesRanksThatShareAGpu) {
  RunConfig config;
  config.mode = Mode::kAllreduce;
  config.collective = CollectiveKind::kNccl;
  config.workers = 2;
  config.device = DeviceKind::kCuda;
  config.output = "results/run-7";
  const auto alone = make_plan(config, "run-7", "box", 2).processes[1].environment;
  EXPECT_THAT(alone, Contains(Pair("NCCL_ALGO", "Ring")));
  EXPECT_THAT(alone, Contains(Pair("NCCL_DEBUG_FILE", "results/run-7/logs/nccl-1.log")));
  EXPECT_THAT(alone, Not(Contains(Key("NCCL_HOSTID"))));
  config.share_gpu = true;
  EXPECT_THAT(make_plan(config, "run-7", "box", 1).processes[1].environment, Contains(Key("NCCL_HOSTID")));
}

TEST(JobPlan, PrintsATableWithALineForEachProcess) {
  EXPECT_EQ(to_text(plan_of(Mode::kLocal, 1, 1), "syncopate"),
            "role       rank  host  command\n"
            "worker        0  box   OMP_NUM_THREADS=1 syncopate --role=worker --rank=0 --run=run-7\n"
            "evaluator     0  box   OMP_NUM_THREADS=1 syncopate --role=evaluator --rank=0 --run=run-7\n");
}

}  // namespace
}  // namespace syncopate::experiments
