// LocalStates: what each worker's model keeps besides its weights at each point of evaluation, until the evaluation
// uses the mean over the workers. Pure: values in, values out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace syncopate::experiments {

class LocalStates {
 public:
  // Takes states of `size` values each; 0 for a model that keeps nothing.
  explicit LocalStates(std::size_t size) : size_(size) {}

  // Returns false and keeps nothing if the state has another size.
  bool add(int rank, std::int64_t point, std::span<const float> state);

  // Returns the mean over all workers that have reached `point`, once all of `awaited` have. Each worker counts with
  // its first state from that point on, since one step of a slow worker may span several points. A lost worker is not
  // awaited, and counts if it had reached the point. Values are added in the order of ranks, so that the bits do not
  // depend on the order of arrival. Empty for a model that keeps nothing.
  std::optional<std::vector<float>> mean(std::int64_t point, std::span<const int> awaited) const;

  // Forgets the points that all of `awaited` (the workers still there) have passed. Until then the slowest of them may
  // become the chief, whose weights are evaluated.
  void forget_what_is_behind(std::span<const int> awaited);

 private:
  std::size_t size_;
  std::map<std::int64_t, std::map<int, std::vector<float>>> states_;  // by point and rank
};

}  // namespace syncopate::experiments
