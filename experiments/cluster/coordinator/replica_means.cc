#include "experiments/cluster/coordinator/replica_means.h"

#include <algorithm>
#include <utility>

namespace syncopate::experiments {

std::optional<std::vector<float>> ReplicaMeans::add(int rank, std::int64_t point, std::span<const float> weights) {
  // The replica will not send any point before this one.
  std::erase_if(points_, [&](const auto& one) { return one.first < point && !one.second.contains(rank); });
  Weights& sent = points_[point];
  sent[rank].assign(weights.begin(), weights.end());
  if (sent.size() < replicas_) return std::nullopt;
  const Weights all = std::exchange(sent, {});
  points_.erase(point);
  return mean_of(all);
}

std::optional<std::vector<float>> ReplicaMeans::mean_of(const Weights& all) {
  const std::size_t size = all.begin()->second.size();
  if (!std::ranges::all_of(all, [&](const auto& one) { return one.second.size() == size; })) return std::nullopt;
  std::vector<double> sum(size);
  for (const auto& [rank, weights] : all) {
    for (std::size_t i = 0; i < size; ++i) sum[i] += weights[i];
  }
  std::vector<float> mean(size);
  for (std::size_t i = 0; i < size; ++i) mean[i] = static_cast<float>(sum[i] / static_cast<double>(all.size()));
  return mean;
}

}  // namespace syncopate::experiments
