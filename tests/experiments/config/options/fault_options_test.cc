#include "experiments/config/resolution.h"
#include "experiments/config/rules/fault_rules.h"
#include "experiments/config/toml.h"
#include "tests/experiments/config/typed_line.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

TEST(FaultOption, MayBeGivenSeveralTimesOrAsAList) {
  const Result<CommandLine> line =
      parse({"--mode=ps", "--workers=4", "--fault=kill:server0@step200", "--fault=stop:worker1@10s+3s,churn:4s"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->config.faults.to_string(), "kill:server0@step200,stop:worker1@10s+3s,churn:4s");
}

TEST(FaultOption, IsRecordedAndReadFromAFile) {
  const Result<CommandLine> line = parse({"--mode=ps", "--fault=kill:worker1@step200,random:7"});
  ASSERT_TRUE(line.ok());
  const std::string text = to_toml(presumed(line->config));
  EXPECT_THAT(text, HasSubstr("fault = \"kill:worker1@step200,random:7\""));
  const Result<ResolvedRun> read = from_toml_text(text);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->faults.to_string(), line->config.faults.to_string());
}

TEST(FaultOption, SaysWhatIsWrongWithAFault) {
  EXPECT_EQ(refusal({"--mode=ps", "--fault=kill:server0"}),
            "--fault=kill:server0: 'kill:server0': when is missing, as in server0@step200 or server0@10s");
  EXPECT_EQ(refusal({"--mode=ps", "--servers=2", "--fault=kill:server2@1s"}),
            "--fault=kill:server2@1s: there are servers 0 to 1");
  EXPECT_EQ(refusal({"--mode=allreduce", "--fault=kill:server0@1s"}), "--fault=kill:server0@1s: there are no servers");
  EXPECT_EQ(refusal({"--mode=ps", "--steps=100", "--fault=kill:worker0@step100"}),
            "--fault=kill:worker0@step100: a worker's steps are 0 to 99");
  EXPECT_EQ(refusal({"--fault=churn:1s"}),
            "--fault=churn:1s: needs two workers or more, since it never takes the last; there is worker 0 alone");
}

TEST(FaultOption, NamesStandbysWhereThereAreSome) {
  EXPECT_EQ(refusal({"--mode=ps", "--servers=2", "--replicas=1", "--fault=kill:standby1@1s"}), "accepted");
  EXPECT_EQ(refusal({"--mode=ps", "--servers=2", "--fault=kill:standby1@1s"}),
            "--fault=kill:standby1@1s: there are no standbys");
}

TEST(FaultOption, CutsLinksWhereMessagesGoOverATransport) {
  const char* cut = "--fault=cut:worker1@1s+1s";
  EXPECT_EQ(refusal({"--mode=ps", cut}), "accepted");
  EXPECT_EQ(refusal({"--mode=allreduce", "--collective=ring", cut}), "accepted");
  EXPECT_EQ(refusal({"--mode=allreduce", "--transport=sockets", cut}), "accepted");
  EXPECT_EQ(refusal({"--mode=allreduce", "--shape=1gbit", cut}), "accepted");
  EXPECT_THAT(refusal({"--mode=allreduce", cut}),
              HasSubstr("there are no links to impair: --collective=direct sends nothing"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--collective=mpi", "--launcher=mpirun", cut}),
              HasSubstr("there are no links to impair: --collective=mpi has wires of its own; use ring"));
  EXPECT_EQ(refusal({"--fault=cut:worker0@1s+1s"}),
            "--fault=cut:worker0@1s+1s: there are no links to impair: --mode=local has none");
}

TEST(FaultOption, StrikesOnOtherHostsButWhereMpirunCarriesThoseThere) {
  EXPECT_EQ(refusal({"--mode=ps", "--hosts=node1:2", "--fault=kill:worker0@1s"}), "accepted");
  EXPECT_EQ(refusal({"--mode=ps", "--hosts=node1:2", "--launcher=mpirun", "--fault=kill:worker0@1s"}),
            "--fault=kill:worker0@1s: what mpirun carries on other hosts cannot be signalled from here; use "
            "--launcher=local");
}

TEST(FaultOption, InjectsInAllRunsOfAComparisonButLocal) {
  const Result<CommandLine> line = parse({"compare", "--modes=local,ps:async", "--fault=stop:worker1@step50+1s"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_TRUE(line->runs[0].config.faults.empty());
  EXPECT_EQ(line->runs[1].config.faults.to_string(), "stop:worker1@step50+1s");
  EXPECT_THAT(refusal({"compare", "--modes=local", "--fault=kill:worker0@1s"}),
              HasSubstr("has no effect on local, whose one worker stands for all"));
  EXPECT_THAT(refusal({"compare", "--modes=allreduce,ps:async", "--fault=kill:server0@1s"}), HasSubstr("server"));
}

TEST(FaultScene, HasThoseThatTheModeHas) {
  ResolvedRun config;
  config.mode = Mode::kPs;
  config.workers = 3;
  config.servers = 2;
  config.replicas = 1;
  const FaultScene scene = fault_scene_of(config, 70);
  EXPECT_EQ(scene.workers, 3);
  EXPECT_EQ(scene.servers, 2);
  EXPECT_EQ(scene.standbys, 2);
  EXPECT_EQ(scene.total_steps, 70);
  EXPECT_EQ(scene.timeout, std::chrono::seconds(30));
  config.mode = Mode::kAllreduce;
  EXPECT_EQ(fault_scene_of(config, 70).servers, 0);
  EXPECT_EQ(fault_scene_of(config, 70).standbys, 0);
}

}  // namespace
}  // namespace syncopate::experiments
