#include "worker/backend/cuda/phase_clock.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace syncopate::worker {
namespace {

// The words of the trainer's Activity.
constexpr const char* kNames[] = {"forward", "backward", "synchronising"};
constexpr std::size_t kEnd = std::size(kNames);  // the point behind them

}  // namespace

Result<std::unique_ptr<PhaseClock>> PhaseClock::make(Device& device, Duration timeout) {
  std::unique_ptr<PhaseClock> clock(new PhaseClock(device, timeout));
  for (Points& points : clock->steps_) {
    for (std::unique_ptr<Event>& event : points.events) {
      SYNCOPATE_ASSIGN_OR_RETURN(event, device.make_event());
    }
  }
  return clock;
}

PhaseClock::~PhaseClock() { close_range(); }

void PhaseClock::begin_turn(std::size_t turn) {
  turn_ = turn;
  steps_[turn].number = ++steps_begun_;
  steps_[turn].idle.reset();
}

void PhaseClock::begin(Phase phase) {
  close_range();
  record(static_cast<std::size_t>(phase));
  nvtxRangePushA(kNames[static_cast<std::size_t>(phase)]);
  range_open_ = true;
}

void PhaseClock::end_step() {
  close_range();
  record(kEnd);
}

void PhaseClock::record(std::size_t point) {
  Points& points = steps_[turn_];
  device_.compute().record(*points.events[point]);
  points.recorded[point] = true;
}

Result<std::optional<DeviceTimes>> PhaseClock::times(std::size_t turn) {
  const Points& points = steps_[turn];
  if (!std::ranges::all_of(points.recorded, std::identity())) return std::optional<DeviceTimes>();
  const auto& [forward, backward, synchronise, end] = points.events;
  SYNCOPATE_RETURN_IF_ERROR(device_.wait(*end, deadline()));
  SYNCOPATE_RETURN_IF_ERROR(measure_idle());
  DeviceTimes times{.forward = device_.between(*forward, *backward),
                    .backward = device_.between(*backward, *synchronise),
                    .idle = points.idle};
  if (points.idle) times.whole = *points.idle + device_.between(*forward, *end);
  return std::optional(times);
}

// Where a step is done, the beginning of the one behind it follows in the stream at once.
Status PhaseClock::measure_idle() {
  for (Points& points : steps_) {
    for (const Points& before : steps_) {
      const bool follow = before.number + 1 == points.number && before.recorded[kEnd] && points.recorded[0];
      if (!follow || points.idle || !device_.done(*before.events[kEnd])) continue;
      SYNCOPATE_RETURN_IF_ERROR(device_.wait(*points.events.front(), deadline()));
      points.idle = device_.between(*before.events[kEnd], *points.events.front());
    }
  }
  return {};
}

void PhaseClock::close_range() {
  if (std::exchange(range_open_, false)) nvtxRangePop();
}

}  // namespace syncopate::worker
