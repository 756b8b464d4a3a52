// How fast a group's wire is, as the cost model counts it.
#pragma once

#include <optional>

#include "allreduce/cost_model.h"
#include "common/clock.h"
#include "common/transport/transport.h"

namespace syncopate::allreduce {

// Every rank calls it, and all get the same: `known`, if rank 0 has it, and else what they measure now, in about a
// tenth of a second. Only rank 0's `known` counts.
//
// Measured are rounds in which every rank sends to the next and receives from the one before, as in a ring, all at
// once: α and β are those of a wire, and of processors, that all ranks use at the same time. γ is taken from adding
// floats that lie in the cache, where a message that has just come mostly is.
Result<LinkModel> agree_on_link(Transport& transport, const std::optional<LinkModel>& known, const Clock& clock,
                                TimePoint deadline);

}  // namespace syncopate::allreduce
