// What follows from a search, in sentences. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/predict/simulated_search.h"

namespace syncopate::experiments {

// Simulated steps that differ by less are taken to be alike.
inline constexpr double kLeastLead = 0.01;

// Which way is the best; how the other modes compare; what asynchronous workers reach, and how stale their gradients
// are; what does not fit into memory; what was not simulated, and why. A lead is claimed between simulated ways alone.
std::vector<std::string> advice(const AdviseRequest& request, int workers, const prediction::SearchResult& found,
                                const SimulatedSearch& search);

// Returns which modes' best synchronous ways are ahead, and of the next one by how much: "8: servers by 20.9 % with 8
// hosts more", "4: allreduce and sharded by 3.0 %", "16: none", or "2: allreduce alone".
std::string lead_in(int workers, const SimulatedSearch& search);

// Says, in paragraphs, what the figures are, and what they leave out.
std::vector<std::string> how_sure(const ScaledJob& job);

}  // namespace syncopate::experiments
