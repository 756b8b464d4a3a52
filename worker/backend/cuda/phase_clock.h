// PhaseClock: the phase timer of a GPU, which also names the phases for a profiler by the NVTX
// ranges "forward", "backward" and "synchronising" on the thread that enqueues the work.
#pragma once

#include <array>
#include <memory>

#include "common/device/device.h"
#include "common/status.h"
#include "worker/backend/phase_timer.h"

namespace syncopate::worker {

class PhaseClock final : public PhaseTimer {
 public:
  // The device must outlive it. A wait for it lasts no longer than `timeout`.
  static Result<std::unique_ptr<PhaseClock>> make(Device& device, Duration timeout);
  ~PhaseClock() override;
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;

  void begin(Phase phase) override;
  Result<std::optional<DeviceTimes>> times() override;

 private:
  PhaseClock(Device& device, Duration timeout) : device_(device), timeout_(timeout) {}
  void close_range();

  Device& device_;
  const Duration timeout_;
  std::array<std::unique_ptr<Event>, 3> begins_;  // by phase
  int begun_ = 0;                                 // phases of this step
  bool range_open_ = false;
};

}  // namespace syncopate::worker
