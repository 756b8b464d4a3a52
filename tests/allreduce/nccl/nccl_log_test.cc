#include "allreduce/nccl/nccl_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::allreduce {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Lines as NCCL 2.28.9 writes them.
constexpr const char* kSharedGpu =
    "box:4711:4711 [0] NCCL INFO Bootstrap: Using lo:127.0.0.1<0>\n"
    "box:4711:4711 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"
    "box:4711:4733 [0] NCCL INFO NCCL_HOSTID set by environment to syncopate-rank-0\n"
    "box:4711:4733 [0] NCCL INFO NCCL_ALGO set by environment to Ring\n"
    "box:4711:4733 [0] NCCL INFO Enabled NCCL Func/Proto/Algo Matrix:\n"
    "     Function |       LL     LL128    Simple   |          Tree           Ring  CollNetDirect   CollNetChain\n"
    "    AllReduce |        1         2         1   |             0              1              0              0\n"
    "\n"
    "box:4711:4733 [0] NCCL INFO 2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p "
    "channels per peer\n"
    "box:4711:4741 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0\n"
    "box:4711:4741 [0] NCCL INFO Channel 01/0 : 1[0] -> 0[0] [receive] via NET/Socket/1\n"
    "box:4711:4741 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n"
    "box:4711:4733 [0] NCCL INFO Broadcast: 40 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n";

TEST(NcclLog, SaysWhatIsAllowedBeforeAnythingIsReduced) {
  const NcclChoice choice = parse_nccl_log(kSharedGpu);
  EXPECT_EQ(choice.allowed_algorithms, "Ring");
  EXPECT_THAT(choice.algorithms, IsEmpty());
  EXPECT_THAT(choice.protocols, IsEmpty());
  EXPECT_THAT(choice.wires, ElementsAre("NET/Socket"));
  EXPECT_EQ(choice.channels, 2);
  EXPECT_EQ(describe(choice), "Ring, 2 channels, NET/Socket");
}

TEST(NcclLog, NamesWhatAllreducesTookAsNcclIsToldIt) {
  const std::string log =
      std::string(kSharedGpu) +
      "box:4711:4750 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n"
      "box:4711:4751 [0] NCCL INFO AllReduce: 67108864 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}\n"
      "box:4711:4752 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n";
  const NcclChoice choice = parse_nccl_log(log);
  EXPECT_THAT(choice.algorithms, ElementsAre("Ring"));
  EXPECT_THAT(choice.protocols, ElementsAre("LL", "Simple"));
  EXPECT_EQ(describe(choice), "Ring, LL/Simple, 2 channels, NET/Socket");
}

TEST(NcclLog, KnowsEveryAlgorithmOfNccl) {
  std::string log;
  for (const char* name : {"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT", "NEW"}) {
    log += std::string("box:1:2 [7] NCCL INFO AllReduce: 8 Bytes -> Algo ") + name +
           " proto LL128 channel{Lo..Hi}={0..0}\n";
  }
  const NcclChoice choice = parse_nccl_log(log);
  EXPECT_THAT(choice.algorithms,
              ElementsAre("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT", "NEW"));
  EXPECT_THAT(choice.protocols, ElementsAre("LL128"));
}

TEST(NcclLog, KnowsTheWires) {
  const NcclChoice choice = parse_nccl_log(
      "box:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n"
      "box:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer\n"
      "box:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\n"
      "box:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0(2)/GDRDMA\n"
      "box:1:2 [0] NCCL INFO Channel 00/01 : 0 1 2 3\n"
      "box:1:2 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1\n");
  EXPECT_THAT(choice.wires, ElementsAre("P2P/CUMEM", "P2P/direct", "SHM/direct", "NET/IB/GDRDMA"));
}

TEST(NcclLog, SaysNothingOfWhatItDoesNotFind) {
  for (const char* log : {"", "\n\n", "AllReduce: 4096 Bytes -> Algo RING proto LL\n", "x NCCL INFO ",
                          "box:1:2 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x7f count 3\n",
                          "box:1:2 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo RING\n",
                          "box:1:2 [0] NCCL INFO Channel 00/0 via \n", "box:1:2 [0] NCCL INFO ? coll channels, 1\n"}) {
    EXPECT_EQ(parse_nccl_log(log), NcclChoice()) << log;
  }
  EXPECT_EQ(describe(NcclChoice()), "");
}

TEST(NcclLog, LeavesOutALineThatIsStillBeingWritten) {
  EXPECT_EQ(parse_nccl_log("box:1:2 [0] NCCL INFO NCCL_ALGO set by environment to Ri"), NcclChoice());
}

}  // namespace
}  // namespace syncopate::allreduce
