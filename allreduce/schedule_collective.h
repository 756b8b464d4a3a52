// ScheduleCollective: runs pure schedules over a Transport.
#pragma once

#include <memory>
#include <optional>

#include "allreduce/collective.h"
#include "allreduce/cost_model.h"
#include "allreduce/schedule.h"

namespace syncopate::allreduce {

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kRing;  // of all_reduce
  std::optional<LinkModel> link = {};       // with it, all_reduce takes what choose_schedule says, whatever `kind` is
  std::size_t segment_bytes = 0;            // parts are no larger; 0: as large as the schedule makes them
  RanksByHost ranks_by_host = {};           // for kHierarchical alone; empty is one host
};

// The transport must outlive the collective, whose name is that of the schedule, or "auto". All ranks must give the same options.
std::unique_ptr<Collective> make_schedule_collective(Transport& transport, const ScheduleOptions& options = {});

}  // namespace syncopate::allreduce
