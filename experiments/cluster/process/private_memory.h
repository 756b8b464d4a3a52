// What a process of a run has in memory, the run's keys among it, is for nobody else to read.
//
// SYNCOPATE_ALLOW_DUMPS=1 in the environment keeps both functions from doing anything, for who wants a core dump or a
// debugger.
#pragma once

namespace syncopate::experiments {

bool dumps_are_allowed();

// Of this process and of all that it starts no core dump is written, nor given to a program that core_pattern names.
void leave_no_core_dumps();

// From now on no other process of this user can trace this one or read its memory, only root. What the kernel then
// refuses, too, are the descriptors of this process under /proc/PID/fd: so not for who lends the run's keys
// (lent_keys.h), nor for who is started by mpirun, whose ranks read each other's memory. Ends with exec(3). Does
// nothing in a program with sanitizers, since the search for leaks traces its own process.
void keep_memory_private();

}  // namespace syncopate::experiments
