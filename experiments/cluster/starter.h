// The starter of a process: the program that has started it on this host, perhaps through mpirun. Processes of a run
// must not outlive it, whenever it is killed.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

namespace syncopate::experiments {

// The exit code of a process whose program could not be started, as in shells.
inline constexpr int kNotStarted = 127;

// Returns the variable that a starter puts into the environment of its children to identify itself.
std::pair<std::string, std::string> named_starter(pid_t pid);

// Returns whether a starter is named and lives, even if it is stopped. (A process on another host has none.)
bool starter_lives();

// Returns whether a starter is named and has died.
bool starter_has_died();

// From now on the kernel kills this process when its parent dies. If a starter is named and has died already, this
// process ends at once, since its parent may have died before the kernel could be asked.
void die_with_parent();

}  // namespace syncopate::experiments
