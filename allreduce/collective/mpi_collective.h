// MpiCollective: Open MPI's own allreduce, for processes that mpirun has started. It brings its own wire.
//
// Operations are MPI's non-blocking ones, driven to their end by the thread that waits for them, so that each keeps its
// deadline and can be interrupted. MPI cannot take one back: the first that does not end is left to itself, all after
// it return cancelled, and MPI_Finalize, which would wait for it, is left out. mpirun takes such an end for a failure
// and ends the other ranks, which is what becomes of the run in any case.
//
// MPI_Init and MPI_Finalize know no deadline: a process that does not come out of them ends itself, since its own
// progress is watched from another thread (experiments/cluster/control/control_client.cc).
#pragma once

#include <memory>

#include "allreduce/collective.h"
#include "common/patience.h"

namespace syncopate::allreduce {

// Initialises MPI (which ends when the collective is destroyed: one a process, ever) with this rank's place in
// MPI_COMM_WORLD. Fails if the world is not as large as `size` or this process is not its `rank`. After a failure of
// its own, a process says so before it destroys the collective: MPI_Finalize waits for the other ranks. `patience`,
// where it is not null, is had with deadlines.
Result<std::unique_ptr<Collective>> make_mpi_collective(int rank, int size,
                                                        std::shared_ptr<Patience> patience = nullptr);

}  // namespace syncopate::allreduce
