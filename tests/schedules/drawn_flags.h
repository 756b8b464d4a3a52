// The flags of a drawn schedule. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace syncopate::experiments {

// Returns the flags of a small run in a simulated cluster, with its faults. The rules of run_experiment may refuse
// them: another `attempt` draws others for the same seed.
std::vector<std::string> draw_flags(std::uint64_t seed, std::uint64_t attempt);

}  // namespace syncopate::experiments
