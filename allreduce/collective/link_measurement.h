// Measures how fast what connects a group is, in the terms of the cost model.
#pragma once

#include <optional>

#include "allreduce/collective/direct_collective.h"
#include "allreduce/collective/schedule_collective.h"
#include "allreduce/schedule/cost_model.h"
#include "common/clock.h"

namespace syncopate::allreduce {

// Called by every rank; all get the same result: `known`, if rank 0 has it, and otherwise what they measure now. That
// takes some tens of milliseconds, or seconds over a slow wire, with fewer and shorter rings. Only rank 0's `known`
// counts. `wire` must sum by the ring's schedule, and must not cut buffers of 256 KiB per rank; `memory`, unless null
// on all ranks, connects those of this host.
//
// On one host, and where no host has several ranks, a ring of all ranks is measured, for all links alike. On others
// that ring tells of the links across hosts, which have one rank's messages at a time where ranks of a host lie behind
// each other; then rings inside all hosts are measured at the same time, over the wire and in memory, and the ranks of
// the largest host say what they have found.
//
// α and β are derived from the time of rings of several lengths, so they are those of a wire, and of processors, that
// all ranks use at the same time. γ is derived from adding floats that lie in the cache, where a message that has just
// arrived mostly lies.
Result<GroupLinks> agree_on_links(ScheduleCollective& wire, DirectCollective* memory,
                                  const std::optional<GroupLinks>& known, const Clock& clock, TimePoint deadline);

}  // namespace syncopate::allreduce
