#include "experiments/config/started_by/started_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/build_paths.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// What a real launcher has put into the environment of a process, as env(1) showed it there.
Variables captured(const std::string& name) {
  const std::string path =
      testing_support::source_directory() + "/tests/experiments/config/started_by/environments/" + name + ".txt";
  std::ifstream lines(path);
  EXPECT_TRUE(lines.good()) << path;
  Variables variables;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return variables;
}

Variables operator+(Variables one, const Variables& other) {
  for (const auto& [name, value] : other) one[name] = value;
  return one;
}

std::optional<TaskPlace> place_in(const Variables& environment, StartedBy by = StartedBy::kAuto) {
  FoundPlace place = started_task(environment, by);
  EXPECT_TRUE(place.ok()) << place.status().message();
  return place.ok() ? *place : std::nullopt;
}

std::string refusal(const Variables& environment, StartedBy by = StartedBy::kAuto) {
  const FoundPlace place = started_task(environment, by);
  EXPECT_EQ(place.status().code(), Code::kInvalidArgument);
  return place.status().message();
}

void expect_place(const std::optional<TaskPlace>& place, StartedBy by, int rank, int size, bool one_host) {
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->by, by);
  EXPECT_EQ(place->rank, rank);
  EXPECT_EQ(place->size, size);
  EXPECT_EQ(place->one_host, one_host);
}

TEST(TaskPlace, IsOfATaskOfSrun) {
  const auto place = place_in(captured("srun-1"));  // srun -N 2 -n 3
  expect_place(place, StartedBy::kSlurm, 1, 3, false);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->job, "slurm-1.0");
  EXPECT_EQ(place->first_host, "node1");
  expect_place(place_in(captured("sbatch-srun-1")), StartedBy::kSlurm, 1, 3, false);
}

TEST(TaskPlace, IsNotOfABatchScriptAndAShellInAnAllocation) {
  EXPECT_EQ(captured("sbatch-script").at("SLURM_PROCID"), "0");  // though it has that
  EXPECT_FALSE(place_in(captured("sbatch-script")).has_value());
  EXPECT_FALSE(place_in(captured("salloc-shell")).has_value());
}

TEST(TaskPlace, IsOfARankOfOpenMpi) {
  const auto place = place_in(captured("mpirun-1"));
  expect_place(place, StartedBy::kOpenMpi, 1, 2, true);
  EXPECT_EQ(place->job, "openmpi-" + captured("mpirun-1").at("PMIX_NAMESPACE"));
}

TEST(TaskPlace, IsOfARankOfMpichWhichNamesNoJob) {
  const auto place = place_in(captured("hydra-1"));
  expect_place(place, StartedBy::kPmi, 1, 2, true);
  EXPECT_EQ(place->job, "");
}

TEST(TaskPlace, IsSlurmsWhereItSetsPmiBesideItsOwn) {
  const auto place = place_in(captured("srun-pmi2-1"));  // srun --mpi=pmi2 -n 2
  expect_place(place, StartedBy::kSlurm, 1, 2, true);
}

TEST(TaskPlace, IsOfAProcessOfTorchrun) {
  const auto place = place_in(captured("torchrun-1"));
  expect_place(place, StartedBy::kTorchrun, 1, 2, true);
  EXPECT_THAT(place->job, HasSubstr(captured("torchrun-1").at("TORCHELASTIC_RUN_ID")));
}

TEST(TaskPlace, SaysWhereRank0IsAndWhatTheTasksHaveInCommon) {
  const auto of_torchrun = place_in(captured("torchrun-1"));
  ASSERT_TRUE(of_torchrun);
  EXPECT_EQ(of_torchrun->first_host, captured("torchrun-1").at("MASTER_ADDR"));
  EXPECT_EQ(of_torchrun->secret_file, "");
  const auto of_mpirun = place_in(captured("mpirun-1"));
  ASSERT_TRUE(of_mpirun);
  EXPECT_EQ(of_mpirun->first_host, "");  // it does not say
  // A person may say more.
  const Variables said{{"MASTER_ADDR", "10.0.0.7"}, {"SYNCOPATE_SECRET_FILE", "/home/me/secret"}};
  for (const char* launcher : {"srun-1", "mpirun-1"}) {
    const auto place = place_in(captured(launcher) + said);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->first_host, "10.0.0.7") << launcher;
    EXPECT_EQ(place->secret_file, "/home/me/secret") << launcher;
  }
}

TEST(TaskPlace, IsNoneOfAProcessAlone) {
  EXPECT_FALSE(place_in({}).has_value());
  EXPECT_FALSE(place_in({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).has_value());
  EXPECT_FALSE(place_in(captured("srun-1") + Variables{{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}));
  EXPECT_FALSE(place_in({{"TF_CONFIG", R"({"task": {"type": "worker", "index": 0}})"}}).has_value());
}

TEST(TaskPlace, IsNoneIfThePersonSaysSo) {
  EXPECT_FALSE(place_in(captured("mpirun-1"), StartedBy::kNobody).has_value());
  EXPECT_FALSE(place_in({{"RANK", "x"}}, StartedBy::kNobody).has_value());
}

TEST(TaskPlace, IsTheInnerOneOfLaunchersThatSrunStarts) {
  // mpirun starts a daemon on each host of an allocation by srun.
  expect_place(place_in(captured("srun-1") + captured("mpirun-1")), StartedBy::kOpenMpi, 1, 2, true);
  // srun --ntasks-per-node=1 torchrun --nproc-per-node=2, on three nodes
  const Variables of_torchrun{
      {"RANK", "3"},       {"WORLD_SIZE", "6"},       {"LOCAL_RANK", "1"},      {"LOCAL_WORLD_SIZE", "2"},
      {"GROUP_RANK", "1"}, {"GROUP_WORLD_SIZE", "3"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
  expect_place(place_in(captured("srun-1") + of_torchrun), StartedBy::kTorchrun, 3, 6, false);
}

TEST(TaskPlace, RefusesLaunchersThatDisagree) {
  const std::string message = refusal(captured("mpirun-1") + captured("torchrun-1") + Variables{{"RANK", "0"}});
  EXPECT_EQ(message,
            "torchrun says rank 0 of 2, mpirun says rank 1 of 2; say whom to believe, or none, with --started-by");
  expect_place(place_in(captured("mpirun-1") + captured("torchrun-1") + Variables{{"RANK", "0"}}, StartedBy::kOpenMpi),
               StartedBy::kOpenMpi, 1, 2, true);
}

TEST(TaskPlace, RefusesWhatIsNoPlace) {
  EXPECT_EQ(refusal(captured("mpirun-1") + Variables{{"OMPI_COMM_WORLD_RANK", "2"}}, StartedBy::kOpenMpi),
            "OMPI_COMM_WORLD_RANK=2: must be below OMPI_COMM_WORLD_SIZE=2");
  EXPECT_EQ(refusal(captured("srun-1") + Variables{{"SLURM_PROCID", "one"}}, StartedBy::kSlurm),
            "SLURM_PROCID=one: must be a whole number from 0");
  EXPECT_THAT(refusal({{"PMI_RANK", "-1"}, {"PMI_SIZE", "2"}}),
              StartsWith("PMI_RANK=-1: must be a whole number from 0"));
  EXPECT_THAT(refusal({{"WORLD_SIZE", "4"}}), HasSubstr("WORLD_SIZE is set, but not RANK"));
  EXPECT_THAT(refusal({{"RANK", "1"}, {"WORLD_SIZE", "4"}}), HasSubstr("MASTER_ADDR is not set"));
  EXPECT_THAT(refusal({}, StartedBy::kSlurm), HasSubstr("--started-by=slurm: the environment has nothing of it"));
  EXPECT_THAT(parse_started_by("pbs").status().message(), HasSubstr("--started-by=pbs: must be"));
  EXPECT_EQ(refusal({{"RANK", "1\n\x1b[2J"}, {"WORLD_SIZE", "2"}}).find('\x1b'), std::string::npos);
}

Variables tf_config(const std::string& type, const std::string& index) {
  return {{"TF_CONFIG", R"({"cluster": {"chief": ["localhost:3001"], "worker": ["localhost:3002", "localhost:3003"],
    "ps": ["localhost:3004"]}, "task": {"type": ")" +
                            type + R"(", "index": )" + index + "}}"}};
}

TEST(TfConfig, RanksTheChiefThenWorkersThenServers) {
  const std::pair<const char*, const char*> tasks[] = {{"chief", "0"}, {"worker", "0"}, {"worker", "1"}, {"ps", "0"}};
  for (int rank = 0; rank < 4; ++rank) {
    const auto place = place_in(tf_config(tasks[rank].first, tasks[rank].second));
    expect_place(place, StartedBy::kTfConfig, rank, 4, true);
    EXPECT_EQ(place->roles, (FixedRoles{.workers = 3, .servers = 1}));
    EXPECT_EQ(place->local_rank, rank);
  }
  EXPECT_EQ(place_in(tf_config("worker", "\"1\""))->rank, 2);  // as some platforms write it
}

TEST(TfConfig, KnowsTheEvaluatorWhichIsNotAmongTheRanks) {
  EXPECT_TRUE(place_in(tf_config("evaluator", "0"))->evaluates);
}

TEST(TfConfig, KnowsWhetherTasksAreOnOneHost) {
  const auto place = place_in(
      {{"TF_CONFIG", R"({"cluster": {"worker": ["a:1", "b:1", "b:2"]}, "task": {"type": "worker", "index": 2}})"}});
  expect_place(place, StartedBy::kTfConfig, 2, 3, false);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->first_host, "a");
  const auto of_ipv6 = place_in(
      {{"TF_CONFIG",
        R"({"cluster": {"worker": ["[fd00::1]:1", "[fd00::2]:1"]}, "task": {"type": "worker", "index": 1}})"}});
  expect_place(of_ipv6, StartedBy::kTfConfig, 1, 2, false);
  EXPECT_EQ(of_ipv6->first_host, "fd00::1");
}

TEST(TfConfig, RefusesWhatItCannotMean) {
  EXPECT_EQ(
      refusal(tf_config("worker", "2")),
      "TF_CONFIG: task is worker 2, which cluster does not have; say whom to believe, or none, with --started-by");
  EXPECT_THAT(refusal(tf_config("reader", "0")), HasSubstr("task is reader 0, which cluster does not have"));
  EXPECT_THAT(refusal(tf_config("worker", "-1")), HasSubstr("task.index must be a whole number"));
  EXPECT_THAT(refusal({{"TF_CONFIG", "{"}}), HasSubstr("must be a JSON object"));
  EXPECT_THAT(refusal({{"TF_CONFIG", R"({"cluster": [1]})"}}), HasSubstr("cluster must have lists"));
  EXPECT_THAT(refusal({{"TF_CONFIG", R"({"cluster": {"worker": ["a"]}, "task": {"type": "worker"}})"}}),
              HasSubstr("must be HOST:PORT"));
  EXPECT_THAT(refusal({{"TF_CONFIG", R"({"cluster": {"gpu": ["a:1"]}, "task": {"type": "gpu"}})"}}),
              HasSubstr("roles are chief"));
  EXPECT_THAT(refusal({{"TF_CONFIG", R"({"cluster": {"worker": ["a:1"]}})"}}), HasSubstr("task.type is missing"));
  EXPECT_THAT(refusal({{"TF_CONFIG", R"({"cluster": {"ps": ["a:1", "b:1"]}, "task": {"type": "ps", "index": 0}})"}}),
              HasSubstr("no chief and no worker"));
}

}  // namespace
}  // namespace syncopate::experiments
