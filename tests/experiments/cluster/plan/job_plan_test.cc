#include "experiments/cluster/plan/job_plan.h"

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
  ResolvedRun config;
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

TEST(JobPlan, HasAProcessForEachOfAThousandAndTwentyFourWorkersAndServers) {
  const JobPlan plan = plan_of(Mode::kPs, 1024, 1024);
  EXPECT_EQ(count_of(plan, Role::kServer), 1024);
  EXPECT_EQ(count_of(plan, Role::kWorker), 1024);
  EXPECT_EQ(names(plan)[1023], "server 1023");
  EXPECT_EQ(names(plan)[2047], "worker 1023");
}

TEST(JobPlan, ShowsRoleRankAndRunInTheCommandLine) {
  const ProcessSpec spec = plan_of(Mode::kAllreduce, 2, 1).processes[1];
  EXPECT_THAT(spec.arguments, ElementsAre("--role=worker", "--rank=1", "--run=run-7"));
  EXPECT_THAT(spec.environment, ElementsAre(Pair("OMP_NUM_THREADS", "1")));
}

TEST(JobPlan, PutsWorkersOnGpusInTurns) {
  ResolvedRun config;
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

TEST(JobPlan, HoldsNcclToWhatIsAskedForAndSeparatesRanksThatShareAGpu) {
  ResolvedRun config;
  config.mode = Mode::kAllreduce;
  config.collective = CollectiveKind::kNccl;
  config.workers = 2;
  config.device = DeviceKind::kCuda;
  config.output = "results/run-7";
  const auto environment_of = [&config](std::size_t rank) {
    return make_plan(config, "run-7", "box", 2).processes[rank].environment;
  };
  const auto alone = environment_of(1);
  EXPECT_THAT(alone, Not(Contains(Key("NCCL_ALGO"))));
  // Rank 0's log says what NCCL chooses.
  EXPECT_THAT(environment_of(0), Contains(Pair("NCCL_DEBUG_SUBSYS", "INIT,ENV,TUNING")));
  EXPECT_THAT(alone, Contains(Pair("NCCL_DEBUG_SUBSYS", "INIT,ENV")));
  EXPECT_THAT(alone, Contains(Pair("NCCL_DEBUG_FILE", "results/run-7/logs/nccl-1.log")));
  EXPECT_THAT(alone, Not(Contains(Key("NCCL_HOSTID"))));
  for (const auto& [kind, algorithm] :
       {std::pair(CollectiveKind::kNcclRing, "Ring"), std::pair(CollectiveKind::kNcclTree, "Tree")}) {
    config.collective = kind;
    EXPECT_THAT(environment_of(0), Contains(Pair("NCCL_ALGO", algorithm)));
    EXPECT_THAT(environment_of(0), Contains(Pair("NCCL_DEBUG_SUBSYS", "INIT,ENV")));
  }
  config.share_gpu = true;
  EXPECT_THAT(make_plan(config, "run-7", "box", 1).processes[1].environment, Contains(Key("NCCL_HOSTID")));
}

const Cluster kTwoHosts{.coordinator = "box",
                        .hosts = {{.name = "node1", .slots = 2, .remote = true, .gpus = 1, .interface = "eth0"},
                                  {.name = "box", .slots = 1, .remote = false, .gpus = 4, .interface = "eth1"}},
                        .remote_shell = {.words = {"ssh", "-T"}, .program = "/opt/syncopate", .directory = "/home/me"}};

ResolvedRun over_two_hosts(Mode mode, int workers) {
  ResolvedRun config;
  config.mode = mode;
  config.workers = workers;
  config.hosts = {{"node1", 2}, {"localhost", 1}};
  return config;
}

std::vector<std::string> places(const JobPlan& plan) {
  std::vector<std::string> result;
  for (const ProcessSpec& spec : plan.processes) result.push_back(spec.name() + " on " + spec.host);
  return result;
}

TEST(JobPlan, FillsSlotsInOrderAndDealsServersToHostsInTurn) {
  ResolvedRun config = over_two_hosts(Mode::kPs, 3);
  config.servers = 3;
  EXPECT_THAT(places(make_plan(config, "run-7", kTwoHosts)),
              ElementsAre("server 0 on node1", "server 1 on box", "server 2 on node1", "worker 0 on node1",
                          "worker 1 on node1", "worker 2 on box", "evaluator on box"));
  config.workers = 1;
  EXPECT_EQ(count_of(make_plan(config, "run-7", kTwoHosts), Role::kWorker), 1);
}

TEST(JobPlan, StartsProcessesOfOtherHostsThroughTheRemoteShellUnderAGuard) {
  const JobPlan plan = make_plan(over_two_hosts(Mode::kAllreduce, 3), "run-7", kTwoHosts);
  EXPECT_TRUE(has_remote_processes(plan));
  EXPECT_THAT(command_line_of(plan, plan.processes[0], "bin/syncopate", {"--rendezvous=tcp://here"}),
              ElementsAre("ssh", "-T", "node1",
                          "cd /home/me && exec env OMP_NUM_THREADS=1 /opt/syncopate --guard /opt/syncopate "
                          "--role=worker --rank=0 --run=run-7 --rendezvous=tcp://here"));
  EXPECT_THAT(command_line_of(plan, plan.processes[2], "bin/syncopate"),
              ElementsAre("bin/syncopate", "--role=worker", "--rank=2", "--run=run-7"));
}

TEST(JobPlan, CountsGpusOnEachHostAndTellsNcclTheInterface) {
  ResolvedRun config = over_two_hosts(Mode::kAllreduce, 3);
  config.collective = CollectiveKind::kNccl;
  config.device = DeviceKind::kCuda;
  config.share_gpu = true;
  config.output = "results/run-7";
  const JobPlan plan = make_plan(config, "run-7", kTwoHosts);
  EXPECT_EQ(plan.processes[0].gpu, 0);
  EXPECT_EQ(plan.processes[1].gpu, 0);  // node1 has one
  EXPECT_EQ(plan.processes[2].gpu, 0);  // the first of this host's
  EXPECT_THAT(plan.processes[0].environment, Contains(Pair("NCCL_SOCKET_IFNAME", "=eth0")));
  EXPECT_THAT(plan.processes[2].environment, Contains(Pair("NCCL_SOCKET_IFNAME", "=eth1")));
  // The folder of results is here.
  EXPECT_THAT(plan.processes[0].environment, Not(Contains(Key("NCCL_DEBUG_FILE"))));
  EXPECT_THAT(plan.processes[2].environment, Contains(Pair("NCCL_DEBUG_FILE", "results/run-7/logs/nccl-2.log")));
  EXPECT_THAT(command_line_of(plan, plan.processes[0], "bin/syncopate").back(),
              testing::HasSubstr("/opt/syncopate --guard /opt/syncopate_gpu --role=worker"));
}

TEST(JobPlan, HasTheWorkersAloneOfAProgramOfOnesOwn) {
  ResolvedRun config;
  config.mode = Mode::kPs;
  config.workers = 2;
  config.servers = 2;
  config.command = {"python", "my train.py"};
  const JobPlan plan = make_plan(config, "run-7", "box");
  EXPECT_THAT(names(plan), ElementsAre("worker 0", "worker 1"));
  EXPECT_THAT(plan.processes[1].command, ElementsAre("python", "my train.py"));
  EXPECT_THAT(plan.processes[1].environment, Contains(Pair("RANK", "1")));
  EXPECT_THAT(to_text(plan, "syncopate"), testing::HasSubstr(" python 'my train.py'\n"));
}

TEST(JobPlan, StartsAProgramOfOnesOwnOnOtherHostsBelowARelay) {
  ResolvedRun config = over_two_hosts(Mode::kAllreduce, 3);
  config.command = {"python", "my train.py"};
  config.listen_address = "10.0.0.7";
  const JobPlan plan = make_plan(config, "run-7", kTwoHosts);
  EXPECT_THAT(places(plan), ElementsAre("worker 0 on node1", "worker 1 on node1", "worker 2 on box"));
  const std::vector<std::string> line = command_line_of(plan, plan.processes[1], "bin/syncopate");
  ASSERT_THAT(line, testing::SizeIs(4));
  EXPECT_THAT(line[3], testing::StartsWith("cd /home/me && exec env RANK=1 LOCAL_RANK=1 "));
  EXPECT_THAT(line[3], testing::EndsWith(" /opt/syncopate --guard /opt/syncopate --relay-command=10.0.0.7 --run=run-7 "
                                         "python 'my train.py'"));
  EXPECT_THAT(command_line_of(plan, plan.processes[2], "bin/syncopate"),
              ElementsAre("bin/syncopate", "--relay-command=10.0.0.7", "--run=run-7", "python", "my train.py"));
  EXPECT_THAT(to_text(plan, "bin/syncopate"), testing::HasSubstr("--guard /opt/syncopate --relay-command"));
}

TEST(JobPlan, HasColocatedServersWithinTheProcessesOfTheirWorkers) {
  ResolvedRun config = over_two_hosts(Mode::kPs, 3);
  config.servers = 3;
  config.colocated = true;
  const JobPlan plan = make_plan(config, "run-7", kTwoHosts);
  EXPECT_THAT(places(plan),
              ElementsAre("server 0 on node1", "server 1 on node1", "server 2 on box", "worker 0 on node1",
                          "worker 1 on node1", "worker 2 on box", "evaluator on box"));
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(plan.processes[rank].within, 3 + rank);
    EXPECT_EQ(plan.processes[rank].remote, plan.processes[3 + rank].remote);
    EXPECT_THAT(members_within(plan, 3 + rank), ElementsAre(rank));
    EXPECT_THAT(members_within(plan, rank), ElementsAre());
  }
  EXPECT_THAT(to_text(plan, "syncopate"), testing::HasSubstr("server        2  box    in the process of worker 2\n"));
}

TEST(JobPlan, HasSpareServersOnHostsWithoutSlots) {
  ResolvedRun config = over_two_hosts(Mode::kPs, 3);
  config.servers = 5;
  config.colocated = true;
  config.spare_servers = 2;
  Cluster cluster = kTwoHosts;
  cluster.hosts.insert(cluster.hosts.begin(), {.name = "spare1", .slots = 0, .remote = true});
  cluster.hosts.push_back({.name = "spare2", .slots = 0, .remote = true});
  const JobPlan plan = make_plan(config, "run-7", cluster);
  EXPECT_THAT(places(plan), ElementsAre("server 0 on node1", "server 1 on node1", "server 2 on box",
                                        "server 3 on spare1", "server 4 on spare2", "worker 0 on node1",
                                        "worker 1 on node1", "worker 2 on box", "evaluator on box"));
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(plan.processes[rank].within, 5 + rank);
  for (const std::size_t spare : {3, 4}) {
    EXPECT_FALSE(plan.processes[spare].within);
    EXPECT_TRUE(plan.processes[spare].remote);
  }
  // As hosts of namespaces are, one for each process.
  cluster.server_hosts = {{.name = "own1"}, {.name = "own2"}};
  EXPECT_THAT(places(make_plan(config, "run-7", cluster)), Contains("server 4 on own2"));
  config.hosts.clear();
  EXPECT_THAT(places(make_plan(config, "run-7", "here")), Contains("server 4 on here")) << "all on this machine";
}

TEST(JobPlan, PrintsATableWithALineForEachProcess) {
  EXPECT_EQ(to_text(plan_of(Mode::kLocal, 1, 1), "syncopate"),
            "role       rank  host  command\n"
            "worker        0  box   OMP_NUM_THREADS=1 syncopate --role=worker --rank=0 --run=run-7\n"
            "evaluator     0  box   OMP_NUM_THREADS=1 syncopate --role=evaluator --rank=0 --run=run-7\n");
}

}  // namespace
}  // namespace syncopate::experiments
