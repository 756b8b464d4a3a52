// PhaseTimer: takes the times of a step's phases by a device's clock. On the CPU there is none: who drives the step
// takes the time itself.
#pragma once

#include <cstddef>
#include <optional>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate::worker {

enum class Phase { kForward, kBackward, kSynchronise };

// The times of one step.
struct DeviceTimes {
  Duration forward{};
  Duration backward{};
  // From the end of the step before to the beginning of this one, and to its end; none for the first step.
  std::optional<Duration> idle = {};
  std::optional<Duration> whole = {};
};

class PhaseTimer {
 public:
  virtual ~PhaseTimer() = default;

  // Ends the phase before. The new one begins after all operations enqueued so far.
  virtual void begin(Phase phase) = 0;
  // Ends the step after all operations enqueued so far.
  virtual void end_step() = 0;
  // Returns the times of the last step of that turn (ComputeBackend::begin_turn). Waits for its end. Returns nothing if
  // not all of its phases have begun and ended.
  virtual Result<std::optional<DeviceTimes>> times(std::size_t turn) = 0;
};

}  // namespace syncopate::worker
