#include "experiments/config/started_by/task_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/config/command_line.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

TaskPlace place_of(int size) { return {.by = StartedBy::kOpenMpi, .size = size}; }

std::string workers_of(GivenOptions given, const TaskPlace& place) {
  const Status status = settle_tasks(place, given);
  return status.ok() ? given["workers"] : status.message();
}

TEST(TaskOptions, MakeAWorkerOfEachTaskThatIsNoServer) {
  EXPECT_EQ(workers_of({{"mode", "allreduce"}}, place_of(4)), "4");
  EXPECT_EQ(workers_of({{"mode", "ps"}, {"servers", "2"}}, place_of(6)), "4");
  EXPECT_EQ(workers_of({{"mode", "ps"}, {"servers", "2"}, {"replicas", "1"}}, place_of(6)), "2");
  EXPECT_EQ(workers_of({{"mode", "ps"}, {"servers", "colocated"}}, place_of(6)), "6");
  EXPECT_EQ(workers_of({{"mode", "ps"}, {"servers", "colocated+2"}}, place_of(6)), "4");
  EXPECT_EQ(workers_of({{"mode", "ps"}, {"servers", "2"}, {"workers", "4"}}, place_of(6)), "4");
}

TEST(TaskOptions, RefuseANumberThatIsNotThatOfTheTasks) {
  EXPECT_EQ(workers_of({{"mode", "ps"}, {"servers", "2"}, {"workers", "3"}}, place_of(6)),
            "--workers=3: mpirun has started 6 processes, of which 2 are servers; use --workers=4, or leave it out");
  EXPECT_THAT(workers_of({{"mode", "ps"}, {"servers", "4"}}, place_of(4)), HasSubstr("none is left for a worker"));
  EXPECT_THAT(workers_of({{"mode", "ps"}, {"servers", "colocated+4"}}, place_of(4)),
              testing::StartsWith("--servers=colocated+4: mpirun has started 4 processes, 4 of which"));
  EXPECT_THAT(workers_of({{"mode", "local"}}, place_of(4)), HasSubstr("--mode=local: trains in one process"));
}

TEST(TaskOptions, WantOfTasksOnSeveralHostsWhatTheyMustKnowOfEachOther) {
  TaskPlace place = place_of(4);
  place.one_host = false;
  const auto answer = [&] { return workers_of({{"mode", "allreduce"}}, place); };
  EXPECT_EQ(answer(),
            "mpirun has started 4 processes on several hosts; it does not say which of its jobs they are; "
            "--started-by=none begins a run without the others");
  place.job = "openmpi-7";
  EXPECT_EQ(answer(),
            "mpirun has started 4 processes on several hosts; it does not say on which of them rank 0 is; name that "
            "one, with mpirun -x MASTER_ADDR=HOST ...");
  place.first_host = "node1";
  EXPECT_EQ(answer(),
            "mpirun has started 4 processes on several hosts; they need a secret in common: make one, (umask 077; head "
            "-c 32 /dev/urandom >FILE), copy it to all hosts, and name it, with mpirun -x SYNCOPATE_SECRET_FILE=FILE "
            "...");
  place.by = StartedBy::kTorchrun;
  EXPECT_THAT(answer(), testing::EndsWith("with SYNCOPATE_SECRET_FILE=FILE in the environment of all"));
  place.secret_file = "/home/me/secret";
  EXPECT_EQ(answer(), "4");
}

TEST(TaskOptions, RefuseWhatTheStarterHasDecided) {
  for (const auto& [name, value] : GivenOptions{{"hosts", "a:2"},
                                                {"launcher", "mpirun"},
                                                {"cluster", "simulated"},
                                                {"command", "true"},
                                                {"listen-address", "10.0.0.7"},
                                                {"wait-for-hosts", "60"}}) {
    EXPECT_THAT(workers_of({{"mode", "allreduce"}, {name, value}}, place_of(4)),
                testing::StartsWith("--" + name + "=" + value + ": "));
  }
  EXPECT_EQ(workers_of({{"mode", "allreduce"}, {"launcher", "local"}, {"cluster", "real"}}, place_of(4)), "4");
}

TEST(TaskOptions, TakeTheRolesThatTheEnvironmentGives) {
  TaskPlace place = place_of(4);
  place.roles = FixedRoles{.workers = 3, .servers = 1};
  GivenOptions given{{"mode", "ps"}};
  ASSERT_TRUE(settle_tasks(place, given).ok());
  EXPECT_EQ(given["servers"], "1");
  EXPECT_EQ(given["workers"], "3");
  EXPECT_THAT(workers_of({{"mode", "ps"}, {"servers", "2"}}, place), HasSubstr("--servers=2: TF_CONFIG has 1 ps"));
  EXPECT_EQ(workers_of({{"mode", "ps"}, {"servers", "colocated+1"}}, place), "3");
  EXPECT_THAT(workers_of({{"mode", "ps"}, {"servers", "colocated+2"}}, place), HasSubstr("TF_CONFIG has 1 ps"));
  EXPECT_THAT(workers_of({{"mode", "allreduce"}}, place), HasSubstr("--mode=allreduce: TF_CONFIG has 1 ps"));
  EXPECT_THAT(workers_of({{"mode", "ps"}, {"replicas", "1"}}, place), HasSubstr("no role for standbys"));
}

TEST(TaskOptions, AreReadFromTheEnvironmentUnlessThePersonSaysOtherwise) {
  const Variables of_mpirun{
      {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}};
  const auto parsed = [&](std::vector<const char*> words) {
    words.insert(words.begin(), "run_experiment");
    return parse_command_line(static_cast<int>(words.size()), words.data(), of_mpirun);
  };
  const Result<CommandLine> one_of_three = parsed({"--mode=allreduce"});
  ASSERT_TRUE(one_of_three.ok());
  EXPECT_EQ(one_of_three->config.workers, 3);
  EXPECT_EQ(one_of_three->place->rank, 1);
  const Result<CommandLine> alone = parsed({"--mode=allreduce", "--started-by=none"});
  ASSERT_TRUE(alone.ok());
  EXPECT_FALSE(alone->place.has_value());
  EXPECT_THAT(parsed({"compare"}).status().message(), HasSubstr("compare: mpirun has started 3 processes"));
}

}  // namespace
}  // namespace syncopate::experiments
