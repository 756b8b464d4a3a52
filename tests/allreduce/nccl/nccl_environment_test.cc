#include "allreduce/nccl/nccl_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::allreduce {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Pair;

TEST(NcclEnvironment, LeavesTheAlgorithmToNcclUnlessOneIsAskedFor) {
  EXPECT_THAT(nccl_environment({}), ElementsAre(Pair("NCCL_RAS_ENABLE", "0"), Pair("NCCL_RUNTIME_CONNECT", "0")));
  EXPECT_THAT(nccl_environment({.algorithm = "Ring"}), Contains(Pair("NCCL_ALGO", "Ring")));
}

TEST(NcclEnvironment, ConnectsBeforeTheFirstOperationWhereCallsAreDirect) {
  EXPECT_THAT(nccl_environment({.direct_calls = false}), ElementsAre(Pair("NCCL_RAS_ENABLE", "0")));
}

TEST(NcclEnvironment, MakesRanksThatShareAGpuHostsOfTheirOwn) {
  const auto variables = nccl_environment({.rank = 3, .shares_gpu = true});
  EXPECT_THAT(variables, Contains(Pair("NCCL_HOSTID", "syncopate-rank-3")));
  EXPECT_THAT(variables, Contains(Pair("NCCL_NET", "Socket")));
  EXPECT_NE(variables, nccl_environment({.rank = 2, .shares_gpu = true}));
}

TEST(NcclEnvironment, KeepsRanksThatShareAGpuOnTheLoopbackInterfaceWhereAllAreOnOneHost) {
  EXPECT_THAT(nccl_environment({.shares_gpu = true}), Contains(Pair("NCCL_SOCKET_IFNAME", "=lo")));
  EXPECT_THAT(nccl_environment({.shares_gpu = true, .interface = "eth0"}),
              Contains(Pair("NCCL_SOCKET_IFNAME", "=eth0")));
}

TEST(NcclEnvironment, NamesTheInterfaceThatLeadsToTheOtherHosts) {
  EXPECT_THAT(nccl_environment({.interface = "eth0"}),
              ElementsAre(Pair("NCCL_RAS_ENABLE", "0"), Pair("NCCL_RUNTIME_CONNECT", "0"),
                          Pair("NCCL_SOCKET_IFNAME", "=eth0")));
}

TEST(NcclEnvironment, LogsToTheFileThatIsNamed) {
  const auto variables = nccl_environment({.log_file = "runs/50%/nccl.log"});
  EXPECT_THAT(variables, Contains(Pair("NCCL_DEBUG", "INFO")));
  EXPECT_THAT(variables, Contains(Pair("NCCL_DEBUG_SUBSYS", "INIT,ENV")));
  EXPECT_THAT(variables, Contains(Pair("NCCL_DEBUG_FILE", "runs/50%%/nccl.log")));
  EXPECT_THAT(nccl_environment({.log_file = "nccl.log", .log_operations = true}),
              Contains(Pair("NCCL_DEBUG_SUBSYS", "INIT,ENV,TUNING")));
}

}  // namespace
}  // namespace syncopate::allreduce
