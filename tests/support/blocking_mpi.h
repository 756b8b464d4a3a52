// Open MPI as anybody would call it first, MPI_Allreduce on a buffer: a peer in benchmarks.
#pragma once

#include <memory>

#include "allreduce/collective.h"

namespace syncopate::testing_support {

// Returns the collective of all processes that mpirun has started; call it once a process. It knows no deadline, cannot
// be interrupted, and ends the process where Open MPI fails.
std::unique_ptr<allreduce::Collective> make_blocking_mpi();

}  // namespace syncopate::testing_support
