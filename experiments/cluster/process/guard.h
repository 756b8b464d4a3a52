// Guard: the parent of a process that must not outlive the coordinator, if the kernel cannot ensure that: a process on
// another host, and mpirun, which must delete its files. The guard ends the process when its own standard input ends.
// The coordinator, or the remote shell in its place, keeps that open as long as it lives and wants the process. The
// guard sends SIGTERM, and then SIGKILL if the process does not end soon, because it is stopped or hangs; then it kills
// what the process has left behind. A worker, server or evaluator gets SIGKILL at once: it leaves SIGTERM, which a
// scheduler sends to all processes of a job, to the coordinator, and so does its guard.
//
// The program has a single thread, so that it can fork:
//   syncopate --guard PROGRAM ARGUMENTS...        on another host
//   syncopate --local-guard PROGRAM ARGUMENTS...  on this one
//   syncopate --loopback-guard PROGRAM ARGUMENTS...  the same; what the program starts listens on this host alone
//                                                    (loopback_binds.h)
#pragma once

namespace syncopate::experiments {

// Returns whether this command line is a guard's.
bool is_guard_command_line(int argc, const char* const* argv);

// Starts the process, passes standard input on to it, but for orders to signal it (signal_orders.h), and waits. Returns
// the process's exit code. If a signal has killed the process, a local guard dies of the same signal; another guard
// returns 128 plus the signal, as shells do.
int guard_main(int argc, char** argv);

}  // namespace syncopate::experiments
