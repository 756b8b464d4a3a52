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
  EXPECT_EQ(workers_of({{"mode", "ps"}, {"servers", "2"}, {"workers", "4"}}, place_of(6)), "4");
}

TEST(TaskOptions, RefuseANumberThatIsNotThatOfTheTasks) {
  EXPECT_EQ(workers_of({{"mode", "ps"}, {"servers", "2"}, {"workers", "3"}}, place_of(6)),
            "--workers=3: mpirun has started 6 processes, of which 2 are servers; use --workers=4, or leave it out");
  EXPECT_THAT(workers_of({{"mode", "ps"}, {"servers", "4"}}, place_of(4)), HasSubstr("none is left for a worker"));
  TaskPlace spread = place_of(4);
  spread.one_host = false;
  EXPECT_THAT(workers_of({{"mode", "allreduce"}}, spread), HasSubstr("4 processes on several hosts"));
  EXPECT_THAT(workers_of({{"mode", "local"}}, place_of(4)), HasSubstr("--mode=local: trains in one process"));
}

TEST(TaskOptions, RefuseWhatTheStarterHasDecided) {
  for (const auto& [name, value] :
       GivenOptions{{"hosts", "a:2"}, {"launcher", "mpirun"}, {"cluster", "simulated"}, {"command", "true"}}) {
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
