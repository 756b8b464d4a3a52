// SchedulePlayer: another way to carry out schedules than by messages of a transport, for a program that holds all
// ranks: a simulated cluster. What comes of it is the same, and takes as long.
#pragma once

#include <optional>
#include <span>

#include "allreduce/schedule/schedule.h"
#include "common/clock.h"
#include "common/status.h"
#include "common/transport/transport.h"

namespace syncopate::allreduce {

class SchedulePlayer {
 public:
  virtual ~SchedulePlayer() = default;

  // Carries out a rank's schedule of an operation, as a ScheduleCollective does. On the thread of the rank. `schedule`
  // must not change meanwhile; what it sends is read within the call.
  virtual Status play(int rank, const Schedule& schedule, std::span<float> buffer, TimePoint deadline) = 0;
  // Carries out an all_reduce of all ranks by a ring, if that takes no playing; none if it does: then play it.
  virtual std::optional<Status> sum_by_ring(int rank, std::span<float> buffer, TimePoint deadline) = 0;

  // The rank that this one waits for, or waited for when it failed; -1 for none.
  virtual int waiting_for(int rank) const = 0;
  // Makes the rank's current and future operations return cancelled.
  virtual void interrupt(int rank) = 0;
  // The payload bytes that the rank has sent and received.
  virtual TransportCounters counters(int rank) const = 0;
};

}  // namespace syncopate::allreduce
