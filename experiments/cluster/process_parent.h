// Which process has started another, as /proc shows it.
#pragma once

#include <sys/types.h>

namespace syncopate::experiments {

// Returns 0 if the process has no parent, or does not exist any more.
pid_t parent_of(pid_t pid);

}  // namespace syncopate::experiments
