// Descendants: all processes below this one, also those whose own parent has ended. They are adopted by this process,
// as orphans are by init, so that it can end them all. For a process with a single thread that reaps its own children.
#pragma once

namespace syncopate::experiments {

// From now on this process is the parent of whatever its descendants leave behind.
void adopt_orphans();

// Kills all descendants and returns once they have ended. Requires adopt_orphans(), and a readable /proc.
void kill_descendants();

}  // namespace syncopate::experiments
