// Guard: the parent of a process on another host, in the coordinator's place. The kernel ends a local process with its
// parent; here the guard does so when its own standard input ends, which the remote shell keeps open as long as the
// coordinator lives and wants the process. It also ends one that is stopped or hangs, which could not end itself.
//
// A program of one thread, so that it can fork: syncopate --guard PROGRAM ARGUMENTS...
#pragma once

namespace syncopate::experiments {

// Whether this command line is a guard's.
bool is_guard_command_line(int argc, const char* const* argv);

// Starts the process, passes on to it what comes on standard input, and waits. Returns the process's exit code, or 128
// and the signal that killed it, as a shell says it. Kills it when standard input ends.
int guard_main(int argc, char** argv);

}  // namespace syncopate::experiments
