#include "experiments/cluster/plan/task_roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;

std::vector<PlanHost> tasks_on(const std::vector<std::string>& hosts) {
  std::vector<PlanHost> tasks;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    tasks.push_back({.name = hosts[rank], .is_task = true, .task = rank == 0 ? "" : "task-" + std::to_string(rank)});
  }
  return tasks;
}

ResolvedRun run_of(int workers, int servers, int replicas = 0) {
  ResolvedRun config;
  config.mode = servers > 0 ? Mode::kPs : Mode::kAllreduce;
  config.workers = workers;
  config.servers = servers;
  config.replicas = replicas;
  return config;
}

std::vector<std::string> tasks_of(const JobPlan& plan, Role role) {
  std::vector<std::string> tasks;
  for (const ProcessSpec& process : plan.processes) {
    if (process.role == role) tasks.push_back(process.task);
  }
  return tasks;
}

JobPlan plan_of(const ResolvedRun& config, const std::vector<std::string>& hosts,
                const std::optional<FixedRoles>& roles = {}) {
  return make_plan(config, "run-7", cluster_of_tasks(config, "box", tasks_on(hosts), roles));
}

TEST(TaskRoles, MakeEveryTaskAWorkerUnderAllreduce) {
  const JobPlan plan = plan_of(run_of(3, 0), {"a", "a", "a"});
  EXPECT_THAT(tasks_of(plan, Role::kWorker), ElementsAre("", "task-1", "task-2"));
  EXPECT_THAT(tasks_of(plan, Role::kEvaluator), ElementsAre(""));  // beside the coordinator
}

TEST(TaskRoles, GiveServersTheLastTasksOfHostsInTurn) {
  const JobPlan plan = plan_of(run_of(4, 2), {"a", "a", "a", "b", "b", "b"});
  EXPECT_THAT(tasks_of(plan, Role::kServer), ElementsAre("task-2", "task-5"));
  EXPECT_THAT(tasks_of(plan, Role::kWorker), ElementsAre("", "task-1", "task-3", "task-4"));
}

TEST(TaskRoles, LeaveAllTasksToWorkersWhereServersAreInTheirProcesses) {
  ResolvedRun config = run_of(3, 3);
  config.colocated = true;
  const JobPlan plan = plan_of(config, {"a", "b", "a"});
  EXPECT_THAT(tasks_of(plan, Role::kWorker), ElementsAre("", "task-2", "task-1"));
  EXPECT_THAT(tasks_of(plan, Role::kServer), ElementsAre("", "task-2", "task-1"));
}

TEST(TaskRoles, GiveTheRanksOfAHostToWorkersThatFollowEachOther) {
  const std::vector<std::string> hosts{"box", "b", "box", "b", "box"};
  const JobPlan plan = plan_of(run_of(5, 0), hosts);
  EXPECT_THAT(tasks_of(plan, Role::kWorker), ElementsAre("", "task-2", "task-4", "task-1", "task-3"));
}

TEST(TaskRoles, SayHowManyWorkersEachHostHas) {
  std::vector<PlanHost> tasks = tasks_on({"box", "b", "box", "c"});
  for (PlanHost& task : tasks) task.remote = task.name != "box";
  const auto hosts_with = [&](int workers, int servers, std::optional<FixedRoles> roles = {}) {
    return to_text(hosts_of(cluster_of_tasks(run_of(workers, servers), "box", tasks, roles)));
  };
  EXPECT_EQ(hosts_with(4, 0), "localhost:2,b:1,c:1");
  EXPECT_EQ(hosts_with(3, 1), "localhost:1,b:1,c:1");
  EXPECT_EQ(hosts_with(3, 1, FixedRoles{.workers = 3, .servers = 1}), "localhost:2,b:1,c:0");  // a server alone
}

TEST(TaskRoles, GiveAStandbyTheHostAfterItsServers) {
  const JobPlan plan = plan_of(run_of(2, 2, 1), {"a", "a", "a", "b", "b", "b"});
  EXPECT_THAT(tasks_of(plan, Role::kServer), ElementsAre("task-2", "task-5"));
  EXPECT_THAT(tasks_of(plan, Role::kStandby), ElementsAre("task-4", "task-1"));
  EXPECT_THAT(tasks_of(plan, Role::kWorker), ElementsAre("", "task-3"));
}

TEST(TaskRoles, PassOverAHostThatHasNoTaskLeft) {
  const JobPlan plan = plan_of(run_of(1, 3), {"a", "b", "b", "b"});
  EXPECT_THAT(tasks_of(plan, Role::kServer), ElementsAre("", "task-3", "task-2"));
  EXPECT_THAT(tasks_of(plan, Role::kWorker), ElementsAre("task-1"));
}

TEST(TaskRoles, AreThoseOfTheEnvironmentWhereItGivesSome) {
  const JobPlan plan = plan_of(run_of(2, 2), {"a", "a", "a", "a"}, FixedRoles{.workers = 2, .servers = 2});
  EXPECT_THAT(tasks_of(plan, Role::kServer), ElementsAre("task-2", "task-3"));
  EXPECT_THAT(tasks_of(plan, Role::kWorker), ElementsAre("", "task-1"));
}

TEST(TaskRoles, PutWorkersOfOneHostOnGpusInTurn) {
  ResolvedRun config = run_of(4, 0);
  config.device = DeviceKind::kCuda;
  std::vector<PlanHost> tasks = tasks_on({"a", "a", "b", "b"});
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].gpus = 2;
    tasks[i].first_gpu = static_cast<int>(i) % 2;
  }
  const JobPlan plan = make_plan(config, "run-7", cluster_of_tasks(config, "box", tasks, {}));
  std::vector<int> gpus;
  for (const ProcessSpec& process : plan.processes) {
    if (process.gpu) gpus.push_back(*process.gpu);
  }
  EXPECT_THAT(gpus, ElementsAre(0, 1, 0, 1));
}

TEST(TaskRoles, ShowInAPlanWhatStandsForEachProcess) {
  const JobPlan plan = plan_of(run_of(2, 0), {"a", "a"});
  EXPECT_THAT(command_line_of(plan, plan.processes[1], "/bin/syncopate"),
              ElementsAre("/bin/syncopate", "--task-shell", "task-1", "OMP_NUM_THREADS=1", "--", "cpu", "--role=worker",
                          "--rank=1", "--run=run-7"));
}

}  // namespace
}  // namespace syncopate::experiments
