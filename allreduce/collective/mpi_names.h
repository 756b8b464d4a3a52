// Names of the files that Open MPI has given to its shared memory (those of its vader transport, below /dev/shm). Open
// MPI removes them in MPI_Finalize; a rank that is killed cannot, and the memory would stay until somebody removes it.
#pragma once

namespace syncopate::allreduce {

// Removes the names at once, so that the memory lives only as long as it is mapped. Call it once every rank of this
// host has mapped what it needs of the others.
void forget_shared_memory_names();

}  // namespace syncopate::allreduce
