#include "worker/backend/cuda/phase_clock.h"

#include <nvtx3/nvToolsExt.h>

#include <utility>

namespace syncopate::worker {
namespace {

// The words of the trainer's Activity.
constexpr const char* kNames[] = {"forward", "backward", "synchronising"};

}  // namespace

Result<std::unique_ptr<PhaseClock>> PhaseClock::make(Device& device, Duration timeout) {
  std::unique_ptr<PhaseClock> clock(new PhaseClock(device, timeout));
  for (std::unique_ptr<Event>& begin : clock->begins_) {
    SYNCOPATE_ASSIGN_OR_RETURN(begin, device.make_event());
  }
  return clock;
}

PhaseClock::~PhaseClock() { close_range(); }

void PhaseClock::begin(Phase phase) {
  close_range();
  const auto number = static_cast<std::size_t>(phase);
  device_.compute().record(*begins_[number]);
  begun_ = phase == Phase::kForward ? 1 : begun_ + 1;
  nvtxRangePushA(kNames[number]);
  range_open_ = true;
}

Result<std::optional<DeviceTimes>> PhaseClock::times() {
  close_range();
  if (begun_ != static_cast<int>(begins_.size())) return std::optional<DeviceTimes>();
  SYNCOPATE_RETURN_IF_ERROR(device_.wait(*begins_.back(), SteadyClock().now() + timeout_));
  return std::optional<DeviceTimes>(
      {.forward = device_.between(*begins_[0], *begins_[1]), .backward = device_.between(*begins_[1], *begins_[2])});
}

void PhaseClock::close_range() {
  if (std::exchange(range_open_, false)) nvtxRangePop();
}

}  // namespace syncopate::worker
