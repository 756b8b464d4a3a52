// The modes, a row each: how replicas are kept in agreement, and what follows from that for whoever starts, checks,
// measures and describes a run. Whoever differs by mode asks its row. Pure.
#pragma once

#include <algorithm>
#include <array>

namespace syncopate::experiments {

enum class Mode { kLocal, kPs, kAllreduce };

struct ModeTraits {
  Mode mode;
  const char* name;         // of --mode
  bool is_distributed;      // several workers, which exchange something
  bool has_servers;         // servers keep the weights: workers push gradients to them and pull weights
  bool sums_among_workers;  // workers sum gradients or weights among themselves, by a collective
};

inline constexpr std::array kModeTraits{
    ModeTraits{Mode::kLocal, "local", false, false, false},
    ModeTraits{Mode::kPs, "ps", true, true, false},
    ModeTraits{Mode::kAllreduce, "allreduce", true, false, true},
};

constexpr const ModeTraits& traits_of(Mode mode) { return *std::ranges::find(kModeTraits, mode, &ModeTraits::mode); }
constexpr const char* name_of(Mode mode) { return traits_of(mode).name; }

}  // namespace syncopate::experiments
