// MpiCollective: Open MPI's own allreduce, for processes that mpirun has started. It uses MPI's own wire.
//
// Operations are MPI's non-blocking ones, which the waiting thread drives to their end, so that each keeps its deadline
// and can be interrupted. MPI cannot cancel one: the first that does not end is abandoned, all after it return
// cancelled, and MPI_Finalize, which would wait for it, is not called. mpirun treats such an exit as a failure and ends
// the other ranks, which happens to the run in any case.
//
// MPI_Init and MPI_Finalize have no deadline. A process that does not return from them ends itself, since another
// thread watches its progress (experiments/cluster/control/control_client.cc).
#pragma once

#include <memory>

#include "allreduce/collective.h"
#include "common/patience.h"

namespace syncopate::allreduce {

// Initialises MPI with this rank's place in MPI_COMM_WORLD. MPI ends when the collective is destroyed, so a process may
// do this only once. Fails if the world is not as large as `size` or this process is not its `rank`. After a failure of
// its own, a process must report it before it destroys the collective: MPI_Finalize waits for the other ranks.
// `patience`, if not null, extends deadlines.
Result<std::unique_ptr<Collective>> make_mpi_collective(int rank, int size,
                                                        std::shared_ptr<Patience> patience = nullptr);

}  // namespace syncopate::allreduce
