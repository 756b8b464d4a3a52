// PhaseClock: the phase timer of a GPU, which also names the phases for a profiler by the NVTX
// ranges "forward", "backward" and "synchronising" on the thread that enqueues the work.
#pragma once

#include <array>
#include <memory>

#include "common/device/device.h"
#include "common/status.h"
#include "common/sync_strategy.h"
#include "worker/backend/phase_timer.h"

namespace syncopate::worker {

class PhaseClock final : public PhaseTimer {
 public:
  // The device must outlive it. A wait for it lasts no longer than `timeout`.
  static Result<std::unique_ptr<PhaseClock>> make(Device& device, Duration timeout);
  ~PhaseClock() override;
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;

  // Begins a step, whose turn it is.
  void begin_turn(std::size_t turn);

  void begin(Phase phase) override;
  void end_step() override;
  Result<std::optional<DeviceTimes>> times(std::size_t turn) override;

 private:
  // Where the phases of one step begin, in their order, and where it ends.
  struct Points {
    std::array<std::unique_ptr<Event>, 4> events;
    std::array<bool, 4> recorded{};  // once at least: a graph records them again without a call
    std::int64_t number = 0;         // of the step, from 1
    std::optional<Duration> idle;
  };

  PhaseClock(Device& device, Duration timeout) : device_(device), timeout_(timeout) {}
  void record(std::size_t point);
  // Takes the time from the end of a step to the beginning of the one behind it, before its turn comes again.
  Status measure_idle();
  TimePoint deadline() const { return SteadyClock().now() + timeout_; }
  void close_range();

  Device& device_;
  const Duration timeout_;
  std::array<Points, kStepsUnderWay> steps_;  // by turn
  std::size_t turn_ = 0;
  std::int64_t steps_begun_ = 0;
  bool range_open_ = false;
};

}  // namespace syncopate::worker
