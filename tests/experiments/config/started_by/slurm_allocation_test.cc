#include "experiments/config/started_by/slurm_allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// As in a script of sbatch -N 2 -n 3.
const Variables kBatch{{"SLURM_JOB_ID", "2"},
                       {"SLURM_JOB_NODELIST", "node[1-2]"},
                       {"SLURM_TASKS_PER_NODE", "2,1"},
                       {"SLURMD_NODENAME", "node1"}};

Variables with(const std::string& name, const std::string& value) {
  Variables variables = kBatch;
  variables[name] = value;
  return variables;
}

TEST(SlurmAllocation, HasASlotForEachTaskAndKnowsItsOwnHost) {
  EXPECT_THAT(*slurm_hosts(kBatch), ElementsAre(HostSlots{"localhost", 2}, HostSlots{"node2", 1}));
  EXPECT_THAT(*slurm_hosts(with("SLURM_TASKS_PER_NODE", "4(x2)")),
              ElementsAre(HostSlots{"localhost", 4}, HostSlots{"node2", 4}));
  EXPECT_THAT(*slurm_hosts(with("SLURMD_NODENAME", "")), ElementsAre(HostSlots{"node1", 2}, HostSlots{"node2", 1}));
}

TEST(SlurmAllocation, IsRefusedWhereThereIsNone) {
  EXPECT_THAT(slurm_hosts({}).status().message(), HasSubstr("not in an allocation"));
  for (const char* wrong : {"2", "2(x3)", "2(x", "0(x2)", "a,b", "1,-1"}) {
    EXPECT_THAT(slurm_hosts(with("SLURM_TASKS_PER_NODE", wrong)).status().message(),
                HasSubstr(std::string("SLURM_TASKS_PER_NODE=") + wrong));
  }
}

TEST(SlurmAllocation, LeavesTasksToServers) {
  GivenOptions given{{"launcher", "slurm"}, {"mode", "ps"}, {"servers", "1"}};
  ASSERT_TRUE(settle_slurm(kBatch, given).ok());
  EXPECT_EQ(given["hosts"], "localhost:1,node2:1");
  EXPECT_EQ(given["workers"], "2");
  given = {{"launcher", "slurm"}, {"mode", "ps"}, {"servers", "colocated"}};
  ASSERT_TRUE(settle_slurm(kBatch, given).ok());
  EXPECT_EQ(given["workers"], "3");
}

TEST(SlurmAllocation, IsNotForARunThatItHasNoRoomFor) {
  GivenOptions given{{"launcher", "slurm"}, {"mode", "ps"}, {"servers", "3"}};
  EXPECT_THAT(settle_slurm(kBatch, given).message(), HasSubstr("the allocation has 3 tasks"));
  given = {{"launcher", "slurm"}, {"mode", "allreduce"}, {"hosts", "a"}};
  EXPECT_THAT(settle_slurm(kBatch, given).message(), HasSubstr("--hosts=a: --launcher=slurm takes the hosts"));
}

TEST(SlurmAllocation, ConcernsNoOtherLauncher) {
  GivenOptions given{{"mode", "allreduce"}};
  ASSERT_TRUE(settle_slurm({}, given).ok());
  EXPECT_EQ(given.size(), 1u);
}

}  // namespace
}  // namespace syncopate::experiments
