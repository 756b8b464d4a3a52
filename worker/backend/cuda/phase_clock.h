// PhaseClock: measures by the device's clock when the phases of a step begin, and names them for a profiler by the NVTX
// ranges "forward", "backward" and "synchronising" on the thread that enqueues the work.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "common/clock.h"
#include "common/device/device.h"
#include "common/status.h"
#include "worker/backend/compute_backend.h"

namespace syncopate::worker {

class PhaseClock {
 public:
  // The device must outlive it.
  static Result<std::unique_ptr<PhaseClock>> make(Device& device);
  ~PhaseClock();
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;

  // Ends the previous phase. The new one begins after all work enqueued on the compute stream so far.
  void begin(ComputeBackend::Phase phase);
  // Ends the step's last phase. Waits for the beginning of that phase, which has passed when the step's work is done.
  // Returns nothing before all three phases of a step were begun.
  Result<std::optional<DeviceTimes>> times(TimePoint deadline);

 private:
  explicit PhaseClock(Device& device) : device_(device) {}
  void close_range();

  Device& device_;
  std::array<std::unique_ptr<Event>, 3> begins_;  // by phase
  int begun_ = 0;                                 // phases of this step
  bool range_open_ = false;
};

}  // namespace syncopate::worker
