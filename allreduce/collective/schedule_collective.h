// ScheduleCollective: runs pure schedules over a Transport.
#pragma once

#include <memory>

#include "allreduce/collective.h"
#include "allreduce/schedule/cost_model.h"
#include "allreduce/schedule/schedule.h"
#include "common/clock.h"
#include "common/trace/tracer.h"

namespace syncopate::allreduce {

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kRing;  // for all_reduce
  std::size_t segment_bytes = 0;            // the largest part; 0: as large as the schedule makes them
  RanksByHost ranks_by_host = {};           // used by kHierarchical only; empty means one host
  const Clock* clock = nullptr;             // told what is summed (Clock::processed), if set; outlives the collective
  Tracer* tracer = nullptr;                 // records parts, if set; outlives the collective
  int number = 0;                           // which of the collectives that one tracer records, the same on all ranks
};

class ScheduleCollective : public Collective {
 public:
  // From now on all_reduce uses the schedule that choose_schedule returns for the buffer's size, and name() is "auto".
  // All ranks must call this with the same figures after the same operation.
  virtual void choose_by(const LinkModel& link) = 0;
};

// The transport must outlive the collective. The collective is named for its schedule. All ranks must give the same
// options.
std::unique_ptr<ScheduleCollective> make_schedule_collective(Transport& transport, const ScheduleOptions& options = {});

}  // namespace syncopate::allreduce
