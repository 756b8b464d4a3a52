#include "tests/software_gpu/work.h"

#include <atomic>
#include <memory>
#include <thread>

#include "tests/software_gpu/order.h"

namespace software_gpu {
namespace {

thread_local bool runs_function = false;

}  // namespace

Make on_host(std::function<void()> function) {
  enum class State { kNew, kBegun, kDone };
  return [function = std::move(function)]() -> Work {
    return [function, state = std::make_shared<std::atomic<State>>(State::kNew)] {
      if (*state == State::kDone) {
        // It may have met the host's other threads.
        Running::now()->knowledge().join(*known_to_host());
        return Progress::kDone;
      }
      if (*state == State::kBegun) return Progress::kWaits;
      *state = State::kBegun;
      std::thread([function, state] {
        runs_function = true;
        function();
        *state = State::kDone;
      }).detach();
      return Progress::kMoved;
    };
  };
}

bool is_on_host_thread() { return runs_function; }

}  // namespace software_gpu
