// Names of files that Open MPI has given to its shared memory (those of its vader transport, below /dev/shm). It takes
// them back in MPI_Finalize; a rank that is killed cannot, and the memory would stay until somebody removes it.
#pragma once

namespace syncopate::allreduce {

// Takes the names back at once: memory lives as long as it is mapped, and no longer. To be called once every rank of
// this host has mapped what it needs of the others.
void forget_shared_memory_names();

}  // namespace syncopate::allreduce
