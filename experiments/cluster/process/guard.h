// Guard: the parent of a process that must not outlive the coordinator, and that the kernel cannot end with it: one on
// another host, and mpirun, which is to remove what it keeps in files. The guard ends it when its own standard input
// ends, which the coordinator, or the remote shell in its place, keeps open as long as it lives and wants the process:
// with SIGTERM, and with SIGKILL where that does not end it soon, since it is stopped or hangs.
//
// A program of one thread, so that it can fork:
//   syncopate --guard PROGRAM ARGUMENTS...        on another host
//   syncopate --local-guard PROGRAM ARGUMENTS...  on this one
#pragma once

namespace syncopate::experiments {

// Whether this command line is a guard's.
bool is_guard_command_line(int argc, const char* const* argv);

// Starts the process, passes on to it what comes on standard input, and waits. Returns the process's exit code. Where a
// signal has killed it, a local guard dies of that, too; else that is 128 and the signal, as a shell says it.
int guard_main(int argc, char** argv);

}  // namespace syncopate::experiments
