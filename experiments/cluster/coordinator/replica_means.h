// ReplicaMeans: weights of replicas that agree on nothing before the end (gossip), point by point, until all have sent
// theirs: what is evaluated is their mean. Pure: values in, values out.
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

  // Those of replica `rank`, as it has come to `point`; each sends its points in order, and may leave some out. Once it
  // is the last of all to send this point, their mean, added up in the order of ranks: the same bits whoever came
  // first. None before, and where not all have sent as many values.
  std::optional<std::vector<float>> add(int rank, std::int64_t point, std::span<const float> weights);

 private:
  using Weights = std::map<int, std::vector<float>>;  // by rank

  static std::optional<std::vector<float>> mean_of(const Weights& all);

  const std::size_t replicas_;
  std::map<std::int64_t, Weights> points_;  // that may still be whole
};

}  // namespace syncopate::experiments
