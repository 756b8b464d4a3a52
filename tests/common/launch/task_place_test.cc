#include "common/launch/task_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const Variables kOfTorchrun{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
const Variables kOfSrun{{"SLURM_JOB_ID", "17"},
                        {"SLURM_STEP_ID", "0"},
                        {"SLURM_PROCID", "3"},
                        {"SLURM_LOCALID", "1"},
                        {"SLURM_STEP_NUM_TASKS", "4"}};

Variables operator+(Variables one, const Variables& other) {
  for (const auto& [name, value] : other) one[name] = value;
  return one;
}

TaskPlace rank_in(const Variables& environment) {
  const FoundPlace place = rank_place(environment);
  EXPECT_TRUE(place.ok()) << place.status().message();
  return place.ok() ? place->value_or(TaskPlace{.rank = -1}) : TaskPlace{.rank = -1};
}

std::string address_in(const Variables& environment) {
  const Result<std::string> address = meeting_address(rank_in(environment), environment);
  EXPECT_EQ(address.status().message(), "");
  return address.ok() ? *address : "";
}

std::string refusal_of_address(const Variables& environment) {
  return meeting_address(rank_in(environment), environment).status().message();
}

TEST(RankPlace, IsWhatRankAndWorldSizeSayWhateverElseIsSet) {
  EXPECT_EQ(rank_in(kOfSrun).rank, 3);
  const TaskPlace told = rank_in(kOfSrun + kOfTorchrun);
  EXPECT_EQ(told.rank, 1);
  EXPECT_EQ(told.size, 2);
  EXPECT_EQ(rank_in({}).rank, -1);
  EXPECT_THAT(rank_place(kOfSrun + Variables{{"RANK", "1"}}).status().message(),
              HasSubstr("RANK is set, but not WORLD_SIZE"));
}

TEST(RankPlace, CountsRanksOnOneHostWhereNobodyCountsThoseOfAHost) {
  EXPECT_EQ(rank_in(kOfTorchrun).local_rank, 1);
  EXPECT_EQ(rank_in(kOfTorchrun + Variables{{"LOCAL_RANK", "0"}}).local_rank, 0);
  EXPECT_EQ(rank_in(kOfTorchrun + Variables{{"MASTER_ADDR", "node1"}}).local_rank, 0);
}

TEST(MeetingAddress, IsWhatThePersonSays) {
  EXPECT_EQ(address_in(kOfTorchrun), "127.0.0.1:29500");
  EXPECT_EQ(address_in(kOfSrun + Variables{{"MASTER_ADDR", "node7"}, {"MASTER_PORT", "1"}}), "node7:1");
}

TEST(MeetingAddress, FollowsFromTheJobOnOneHost) {
  const Variables one_host = kOfSrun + Variables{{"SLURM_STEP_NUM_NODES", "1"}};
  const std::string address = address_in(one_host);
  EXPECT_THAT(address, StartsWith("127.0.0.1:2"));  // 20000 to 32767
  EXPECT_EQ(address_in(one_host + Variables{{"SLURM_PROCID", "0"}}), address);
  EXPECT_NE(address_in(one_host + Variables{{"SLURM_STEP_ID", "1"}}), address);
}

TEST(MeetingAddress, IsOnTheFirstHostThatSrunNames) {
  for (const auto& [hosts, first] :
       {std::pair("node1", "node1"), std::pair("node1,node2", "node1"), std::pair("node[1-3]", "node1"),
        std::pair("gpu[07,09-12],login", "gpu07"), std::pair("a-b[2]", "a-b2")}) {
    const Variables several{{"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_STEP_NODELIST", hosts}};
    EXPECT_THAT(address_in(kOfSrun + several), StartsWith(std::string(first) + ":"));
  }
}

TEST(MeetingAddress, IsAskedForWhereItIsNotKnown) {
  EXPECT_THAT(refusal_of_address({{"OMPI_COMM_WORLD_RANK", "0"},
                                  {"OMPI_COMM_WORLD_SIZE", "4"},
                                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                  {"PMIX_NAMESPACE", "prterun-1"}}),
              HasSubstr("name it, with mpirun -x MASTER_ADDR=HOST"));
  EXPECT_THAT(refusal_of_address({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}}),
              HasSubstr("PMI does not name the job: set MASTER_PORT"));
}

}  // namespace
}  // namespace syncopate
