// ReplicaMeans: collects, point by point, the weights of replicas that agree on nothing before the end (gossip). Their
// mean is what is evaluated. Pure: values in, values out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace syncopate::experiments {

class ReplicaMeans {
 public:
  explicit ReplicaMeans(int replicas) : replicas_(static_cast<std::size_t>(replicas)) {}

  // Adds the weights of replica `rank` at `point`. Each replica sends its points in order, and may leave some out. If
  // it is the last one to send this point, returns their mean, added in the order of ranks, so that the bits do not
  // depend on the order of arrival. Returns none before that, and if the replicas have not all sent the same number of
  // values.
  std::optional<std::vector<float>> add(int rank, std::int64_t point, std::span<const float> weights);

 private:
  using Weights = std::map<int, std::vector<float>>;  // by rank

  static std::optional<std::vector<float>> mean_of(const Weights& all);

  const std::size_t replicas_;
  std::map<std::int64_t, Weights> points_;  // points that can still become complete
};

}  // namespace syncopate::experiments
