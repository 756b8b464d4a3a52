// The time of schedules in the α-β-γ model (cost_model.h), simulated message by message. Pure.
#pragma once

#include <functional>
#include <vector>

#include "allreduce/schedule/cost_model.h"

namespace syncopate::allreduce {

// Returns the seconds until all ranks have finished their schedules: one per rank, of one operation. link(from, to) is
// the link of two ranks; the γ of a reduction is that of the link its part came over. Links hold any number of parts.
double simulated_seconds(const std::vector<Schedule>& schedules,
                         const std::function<LinkModel(int from, int to)>& link);

// Returns the same for ranks on hosts: those of one host send to each other as links.inside says, and to others as
// links.across, whose bytes follow those of the host's other ranks, each way.
double simulated_seconds(const std::vector<Schedule>& schedules, const RanksByHost& hosts, const GroupLinks& links);

}  // namespace syncopate::allreduce
