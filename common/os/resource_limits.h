// What the system lets a process have: descriptors, threads, memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/status.h"

namespace syncopate {

// From now on this process, and what it starts, may have as many descriptors as it may ask for, up to 65536: some
// programs look at each that there could be.
void raise_descriptor_limit();
// How many it may have.
std::int64_t descriptor_limit();
// Whether another can be had now.
bool has_free_descriptor();

// Whether so many threads can be started beside those that there are. Resource exhausted, with the limit, if not.
Status check_threads(int threads);

// Behind what failed with `error` (an errno): which limit that is, and how it is raised, as in "; ulimit -n is 64:
// raise it". Empty where no limit is known.
std::string limit_behind(int error);

// Does the work on a thread with a table of descriptors of its own, in which nothing is open but standard input, output
// and error: whatever has used up this process's. Returns false where the system has no such thread.
bool with_own_descriptors(const std::function<void()>& work);

}  // namespace syncopate
