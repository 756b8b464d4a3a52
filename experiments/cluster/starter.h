// The starter of a process: the program that has started it on this host, be it through mpirun. What a run starts must
// not outlive it, whenever it is killed.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

namespace syncopate::experiments {

// The exit code of a process whose program could not be started, as shells have it.
inline constexpr int kNotStarted = 127;

// What a starter puts into the environment of its children: who it is.
std::pair<std::string, std::string> named_starter(pid_t pid);

// A starter is named, and lives, be it stopped. (Of a process on another host none is.)
bool starter_lives();

// From now on the kernel kills this process when its parent dies. Where the starter is named and has died before, this
// process ends here and now: its parent may have died, too, before it could be asked for that.
void die_with_parent();

}  // namespace syncopate::experiments
