#include "experiments/coordinator/local_states.h"

#include <algorithm>
#include <iterator>

namespace syncopate::experiments {

bool LocalStates::add(int rank, std::int64_t epoch, std::span<const float> state) {
  if (state.size() != size_) return false;
  states_[epoch][rank].assign(state.begin(), state.end());
  return true;
}

std::optional<std::vector<float>> LocalStates::mean(std::int64_t epoch, std::span<const int> awaited) const {
  if (size_ == 0) return std::vector<float>();
  const auto found = states_.find(epoch);
  if (found == states_.end()) return std::nullopt;
  const std::map<int, std::vector<float>>& states = found->second;
  if (!std::ranges::all_of(awaited, [&](int rank) { return states.contains(rank); })) return std::nullopt;
  std::vector<double> sums(size_);
  for (const auto& [rank, state] : states) {
    for (std::size_t i = 0; i < size_; ++i) sums[i] += state[i];
  }
  std::vector<float> mean(size_);
  for (std::size_t i = 0; i < size_; ++i) mean[i] = static_cast<float>(sums[i] / static_cast<double>(states.size()));
  return mean;
}

void LocalStates::forget_what_is_behind(std::span<const int> awaited) {
  std::vector<int> unseen(awaited.begin(), awaited.end());
  for (auto epoch = states_.rbegin(); epoch != states_.rend(); ++epoch) {
    std::erase_if(unseen, [&](int rank) { return epoch->second.contains(rank); });
    if (!unseen.empty()) continue;
    states_.erase(states_.begin(), std::prev(epoch.base()));
    return;
  }
}

}  // namespace syncopate::experiments
