// The limits of the system for a process: descriptors, threads, memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/status.h"

namespace syncopate {

// Raises the limit of descriptors, for this process and its children, to the most that it may set, but at most 65536:
// some programs iterate over all possible descriptors.
void raise_descriptor_limit();
// The current limit of descriptors.
std::int64_t descriptor_limit();
// Whether another descriptor can be opened now.
bool has_free_descriptor();

// Whether `threads` more threads can be started. Fails with resource exhausted, with the limit, if not.
Status check_threads(int threads);

// Returns a suffix for the message of a failure with `error` (an errno): the limit that was reached, and how to raise
// it, such as "; ulimit -n is 64: raise it". Empty if no limit is known.
std::string limit_behind(int error);

// Does the work on a thread with a descriptor table of its own, in which only standard input, output and error are
// open. So it works even if this process has used up its descriptors. Returns false if the system cannot provide such a
// thread.
bool with_own_descriptors(const std::function<void()>& work);

}  // namespace syncopate
