// ScheduleCollective: runs pure schedules over a Transport.
#pragma once

#include <memory>

#include "allreduce/collective.h"
#include "allreduce/schedule/cost_model.h"
#include "allreduce/schedule/schedule.h"

namespace syncopate::allreduce {

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kRing;  // of all_reduce
  std::size_t segment_bytes = 0;            // parts are no larger; 0: as large as the schedule makes them
  RanksByHost ranks_by_host = {};           // for kHierarchical alone; empty is one host
};

class ScheduleCollective : public Collective {
 public:
  // From now on all_reduce takes, by the buffer's size, what choose_schedule says, and the collective is called "auto".
  // All ranks must do so with the same figures after the same operation.
  virtual void choose_by(const LinkModel& link) = 0;
};

// The transport must outlive the collective, whose name is that of the schedule. All ranks must give the same options.
std::unique_ptr<ScheduleCollective> make_schedule_collective(Transport& transport, const ScheduleOptions& options = {});

}  // namespace syncopate::allreduce
