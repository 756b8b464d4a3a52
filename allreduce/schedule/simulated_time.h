// How long schedules take by the α-β-γ model (cost_model.h), message by message. Pure.
#pragma once

#include <functional>
#include <vector>

#include "allreduce/schedule/cost_model.h"

namespace syncopate::allreduce {

// Seconds until all ranks have come to the end of their schedules: one a rank, of one operation. link(from, to) is that
// of two ranks; the γ of a reduction is that of the link its part came over. Links hold any number of parts.
double simulated_seconds(const std::vector<Schedule>& schedules,
                         const std::function<LinkModel(int from, int to)>& link);

}  // namespace syncopate::allreduce
