// PhaseTimer: takes the times of a step's phases by a device's clock. On the CPU there is none: who drives the step
// takes the time itself.
#pragma once

#include <optional>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate::worker {

enum class Phase { kForward, kBackward, kSynchronise };

// The times of one step.
struct DeviceTimes {
  Duration forward{};
  Duration backward{};
};

class PhaseTimer {
 public:
  virtual ~PhaseTimer() = default;

  // Ends the phase before. The new one begins after all operations enqueued so far.
  virtual void begin(Phase phase) = 0;
  // Ends the step's last phase. Waits for the beginning of that phase, which has passed when the step's work is done.
  // Returns nothing before all three phases of a step were begun.
  virtual Result<std::optional<DeviceTimes>> times() = 0;
};

}  // namespace syncopate::worker
