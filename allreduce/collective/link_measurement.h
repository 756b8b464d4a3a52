// How fast a group's wire is, as the cost model counts it.
#pragma once

#include <optional>

#include "allreduce/collective.h"
#include "allreduce/schedule/cost_model.h"
#include "common/clock.h"

namespace syncopate::allreduce {

// Every rank calls it, and all get the same: `known`, if rank 0 has it, and else what they measure now, in some tens of
// milliseconds; over a slow wire in seconds, with fewer and shorter rings. Only rank 0's `known` counts. `ring` sums by
// the ring's schedule, and buffers of 256 KiB a rank uncut.
//
// α and β are taken from how long rings of several lengths last: so they are those of a wire, and of processors, that
// all ranks use at the same time. γ is taken from adding floats that lie in the cache, where a message that has just
// come mostly is.
Result<LinkModel> agree_on_link(Collective& ring, const std::optional<LinkModel>& known, const Clock& clock,
                                TimePoint deadline);

}  // namespace syncopate::allreduce
