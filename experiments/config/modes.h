// The modes, a row each: how replicas are kept in agreement, and what follows from that for whoever starts, checks,
// measures and describes a run. Whoever differs by mode asks its row. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "common/text/list_text.h"

namespace syncopate::experiments {

enum class Mode { kLocal, kAllreduce, kSharded, kPs, kHybrid };

struct ModeTraits {
  Mode mode;
  const char* name;         // of --mode
  bool is_distributed;      // several workers, which exchange something
  bool has_servers;         // servers keep weights: workers push gradients to them and pull weights
  bool sums_among_workers;  // workers sum gradients or weights among themselves, by a collective; where there are
                            // servers, too, these keep row-sparse tables alone
  bool replicates_state;    // each worker makes every update itself, and has the optimizer's whole state for it
  const char* in_step;      // in `compare`: the mode in which all workers update together, and follow local's curve

  // What follows from these.
  bool has_servers_alone() const { return has_servers && !sums_among_workers; }  // of all weights
  bool is_hybrid() const { return has_servers && sums_among_workers; }           // of tables, and of what is dense
  bool shards_state() const { return sums_among_workers && !replicates_state && !has_servers; }
  // Whether `compare` checks that it follows the curve even if no row is of it.
  bool is_reference() const { return replicates_state || has_servers_alone(); }
};

inline constexpr std::array kModeTraits{
    ModeTraits{Mode::kLocal, "local", false, false, false, true, "local"},
    ModeTraits{Mode::kAllreduce, "allreduce", true, false, true, true, "allreduce"},
    ModeTraits{Mode::kSharded, "sharded", true, false, true, false, "sharded"},
    ModeTraits{Mode::kPs, "ps", true, true, false, false, "ps:sync"},
    ModeTraits{Mode::kHybrid, "hybrid", true, true, true, false, "hybrid"},
};

constexpr const ModeTraits& traits_of(Mode mode) { return *std::ranges::find(kModeTraits, mode, &ModeTraits::mode); }
constexpr const char* name_of(Mode mode) { return traits_of(mode).name; }

// Returns the modes of which `test` is true, as they are typed: "--mode=allreduce or --mode=ps".
template <typename Test>
std::string modes_with(const Test& test) {
  std::vector<std::string> modes;
  for (const ModeTraits& each : kModeTraits) {
    if (std::invoke(test, each)) modes.push_back(std::string("--mode=") + each.name);
  }
  return list_text(modes, "or");
}

}  // namespace syncopate::experiments
