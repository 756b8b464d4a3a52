// The collective on GPUs over NCCL 2.28, which brings its own wires: NVLink, PCIe, shared memory, InfiniBand, sockets.
//
// The mean is NCCL's ncclAvg: each rank's values times 1/n as a float, then summed. So it is the exact mean's rounding
// only where n is a power of two.
//
// What NCCL is to be told by environment variables: nccl_environment.h.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "allreduce/device_collective.h"
#include "common/rendezvous.h"

namespace syncopate::allreduce {

struct NcclOptions {
  int rank = 0;
  int size = 1;
  // Of the rendezvous, at which rank 0 gives away NCCL's unique id.
  std::string group = "nccl";
  // Who gives an operation to the GPU. Directly: the calling thread, as most users of NCCL do; should NCCL get stuck
  // then, nothing ends the call. Otherwise NCCL starts a thread for each operation (its group.cc), which takes some
  // tens of microseconds, and the call ends in time whatever happens.
  bool direct_calls = false;
  // How long NCCL may take to give one operation to the GPU (not to carry it out). The first one may connect the ranks.
  Duration call_timeout = std::chrono::seconds(30);
  // NCCL_DEBUG_FILE of this process; empty where there is none. Read by description() alone.
  std::string log_file;
};

// Joins the group: called by all ranks, each on the thread of its device, which must be a CUDA device and outlive the
// collective. The rendezvous is used here only. Deadline exceeded where not all ranks come in time; invalid argument
// where NCCL refuses the group (two ranks on one GPU, say).
//
// Errors carry NCCL's own words. After one, every call returns the same again. Destroying the collective leaves the
// group, or gives up work that is not done in some seconds; it may leave a thread behind in NCCL where NCCL does not
// come back, and never waits for it longer.
Result<std::unique_ptr<DeviceCollective>> connect_nccl(const NcclOptions& options, Device& device,
                                                       Rendezvous& rendezvous, const Clock& clock, TimePoint deadline);

}  // namespace syncopate::allreduce
