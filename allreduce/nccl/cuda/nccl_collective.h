// The collective on GPUs over NCCL 2.28, which has its own wires: NVLink, PCIe, shared memory, InfiniBand, sockets.
//
// The mean is NCCL's ncclAvg: each rank's values times 1/n as a float, then summed. So it is the correctly rounded mean
// only if n is a power of two.
//
// nccl_environment.h sets the environment variables that NCCL needs.
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
  // The group at the rendezvous, where rank 0 publishes NCCL's unique id.
  std::string group = "nccl";
  // Chooses the thread that enqueues an operation on the GPU. True: the calling thread, as for most users of NCCL; a
  // call that does not return in time is ended by aborting the communicator from another thread. False: NCCL starts a
  // thread for each operation (its group.cc), which takes some tens of microseconds, and the call returns at once.
  bool direct_calls = true;
  // How long NCCL may take to enqueue one operation on the GPU (not to carry it out). The first one may connect the
  // ranks. A direct call may last an eighth longer.
  Duration call_timeout = std::chrono::seconds(30);
  // NCCL_DEBUG_FILE of this process; empty for none. Only description() reads it.
  std::string log_file;
};

// Joins the group. All ranks call it, each on the thread of its device, which must be a CUDA device and outlive the
// collective. The rendezvous is used only here. Fails with deadline exceeded if not all ranks join in time, and with
// invalid argument if NCCL refuses the group (two ranks on one GPU, say).
//
// Errors carry NCCL's own words. After one, every call returns the same error. Destroying the collective leaves the
// group, or aborts work that is not done within some seconds. If NCCL does not return, it leaves a thread behind in
// NCCL rather than wait longer.
Result<std::unique_ptr<DeviceCollective>> connect_nccl(const NcclOptions& options, Device& device,
                                                       Rendezvous& rendezvous, const Clock& clock, TimePoint deadline);

}  // namespace syncopate::allreduce
