// Pieces of work, as streams and graphs do them.
#pragma once

#include <functional>

namespace software_gpu {

// What a step of a piece of work has come to: its end; a part of it; nothing, since it waits for an event, for another
// rank, or for the host.
enum class Progress { kDone, kMoved, kWaits };

// A piece of work. Runs with the lock and with device memory open.
using Work = std::function<Progress()>;
// Called when the work is given to a stream, or each time its graph is launched.
using Make = std::function<Work()>;

inline Make always(std::function<void()> work) {
  return [work = std::move(work)]() -> Work {
    return [work] {
      work();
      return Progress::kDone;
    };
  };
}

// A function of the host's, which runs on a thread of its own, without the lock, but for after an error.
Make on_host(std::function<void()> function);
// Whether this thread runs one.
bool is_on_host_thread();

}  // namespace software_gpu
