// Measures how fast a group's wire is, in the terms of the cost model.
#pragma once

#include <optional>

#include "allreduce/collective.h"
#include "allreduce/schedule/cost_model.h"
#include "common/clock.h"

namespace syncopate::allreduce {

// Called by every rank; all get the same result: `known`, if rank 0 has it, and otherwise what they measure now. That
// takes some tens of milliseconds, or seconds over a slow wire, with fewer and shorter rings. Only rank 0's `known`
// counts. `ring` must sum by the ring's schedule, and must not cut buffers of 256 KiB per rank.
//
// α and β are derived from the time of rings of several lengths, so they are those of a wire, and of processors, that
// all ranks use at the same time. γ is derived from adding floats that lie in the cache, where a message that has just
// arrived mostly lies.
Result<LinkModel> agree_on_link(Collective& ring, const std::optional<LinkModel>& known, const Clock& clock,
                                TimePoint deadline);

}  // namespace syncopate::allreduce
