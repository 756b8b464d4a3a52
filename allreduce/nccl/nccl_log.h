// Reads from NCCL's log how it works, for the record of a run. Pure: text in, values out.
//
// The lines are those that NCCL 2.28 writes (its sources' debug.cc: "host:pid:thread [GPU] NCCL INFO ..."):
//
//   NCCL_ALGO set by environment to Ring                                     subsystem ENV (graph/tuning.cc)
//   2 coll channels, 0 collnet channels, 0 nvls channels, ...                INIT (init.cc)
//   Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0                      INIT (transport/net.cc, p2p.cc, shm.cc)
//   AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}       TUNING (enqueue.cc), of rank 0 alone, for
//                                                                            each operation
//
// NCCL does not guarantee their format: another version may word them differently. What is not found is left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncopate::allreduce {

struct NcclChoice {
  // NCCL_ALGO as NCCL has read it; empty if it was not set. NCCL uses no other, or fails ("no algorithm/protocol
  // available"). A group of one rank has no algorithm, and does not read it.
  std::string allowed_algorithms;
  // What the allreduces so far used, each once, in order of first use, named as in NCCL_ALGO and NCCL_PROTO: {"Ring"},
  // {"LL", "Simple"}. NCCL chooses a protocol by the size of each buffer.
  std::vector<std::string> algorithms;
  std::vector<std::string> protocols;
  // How ranks are connected, each once: "P2P/CUMEM" (NVLink or PCIe), "SHM/direct", "NET/Socket", "NET/IB/GDRDMA".
  std::vector<std::string> wires;
  // The most that one operation may use; 0 if the log does not say.
  int channels = 0;

  bool operator==(const NcclChoice&) const = default;
};

// Parses a log that may still be growing: it ignores a last line without a newline.
NcclChoice parse_nccl_log(std::string_view log);

// Returns "Ring, LL/Simple, 2 channels, NET/Socket", without what is unknown, so it may be empty.
std::string describe(const NcclChoice& choice);

}  // namespace syncopate::allreduce
