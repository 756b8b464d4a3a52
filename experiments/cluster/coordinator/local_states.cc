#include "experiments/cluster/coordinator/local_states.h"

#include <algorithm>
#include <iterator>

namespace syncopate::experiments {

bool LocalStates::add(int rank, std::int64_t point, std::span<const float> state) {
  if (state.size() != size_) return false;
  states_[point][rank].assign(state.begin(), state.end());
  return true;
}

std::optional<std::vector<float>> LocalStates::mean(std::int64_t point, std::span<const int> awaited) const {
  if (size_ == 0) return std::vector<float>();
  std::map<int, const std::vector<float>*> first;  // by rank
  for (auto from = states_.lower_bound(point); from != states_.end(); ++from) {
    for (const auto& [rank, state] : from->second) first.try_emplace(rank, &state);
  }
  if (first.empty() || !std::ranges::all_of(awaited, [&](int rank) { return first.contains(rank); })) {
    return std::nullopt;
  }
  std::vector<double> sums(size_);
  for (const auto& [rank, state] : first) {
    for (std::size_t i = 0; i < size_; ++i) sums[i] += (*state)[i];
  }
  std::vector<float> mean(size_);
  for (std::size_t i = 0; i < size_; ++i) mean[i] = static_cast<float>(sums[i] / static_cast<double>(first.size()));
  return mean;
}

void LocalStates::forget_what_is_behind(std::span<const int> awaited) {
  std::vector<int> unseen(awaited.begin(), awaited.end());
  for (auto point = states_.rbegin(); point != states_.rend(); ++point) {
    std::erase_if(unseen, [&](int rank) { return point->second.contains(rank); });
    if (!unseen.empty()) continue;
    states_.erase(states_.begin(), std::prev(point.base()));
    return;
  }
}

}  // namespace syncopate::experiments
