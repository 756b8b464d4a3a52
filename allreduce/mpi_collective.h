// MpiCollective: Open MPI's own allreduce, for processes that mpirun has started. It brings its own wire.
//
// MPI's calls cannot be interrupted and know no deadline: a process that uses this collective watches its own progress
// from another thread and ends itself when it stands still (experiments/control/control_client.cc).
#pragma once

#include <memory>

#include "allreduce/collective.h"

namespace syncopate::allreduce {

// Initialises MPI (which ends when the collective is destroyed: one a process, ever) with this rank's place in
// MPI_COMM_WORLD. Fails if the world is not as large as `size` or this process is not its `rank`.
Result<std::unique_ptr<Collective>> make_mpi_collective(int rank, int size);

}  // namespace syncopate::allreduce
