// Keeps the memory of a run's processes, which contains the run's keys, from being read by others.
//
// SYNCOPATE_ALLOW_DUMPS=1 in the environment makes both functions do nothing, for a person who wants a core dump or a
// debugger.
#pragma once

namespace syncopate::experiments {

bool dumps_are_allowed();

// From now on no core dump of this process, or of any that it starts, is written or passed to a program that
// core_pattern names.
void leave_no_core_dumps();

// From now on no other process of this user can trace this one or read its memory; only root can. The kernel then also
// denies access to this process's descriptors under /proc/PID/fd. It is therefore not for a process that shares the
// run's keys (shared_keys.h), and not for ranks of mpirun, which read each other's memory. exec(3) ends the effect.
// Does nothing in a program with sanitizers, since the search for leaks traces its own process.
void keep_memory_private();

}  // namespace syncopate::experiments
