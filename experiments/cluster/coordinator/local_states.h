// LocalStates: what each worker's model has kept beside its weights by each point at which these are evaluated, until
// it is evaluated, too, as the mean over the workers. Pure: values in, values out.
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
  // Of `size` values each; 0 for a model that keeps nothing.
  explicit LocalStates(std::size_t size) : size_(size) {}

  // False, and nothing kept, where it has another size.
  bool add(int rank, std::int64_t point, std::span<const float> state);

  // The mean over all workers that have come to `point`, once all of `awaited` have: of each its first state from there
  // on, since one step of a slow worker may span several points. A worker that is lost is awaited no more, and counts
  // where it had come so far. Added up in the order of ranks: the same bits whoever came first. Empty for a model that
  // keeps nothing.
  std::optional<std::vector<float>> mean(std::int64_t point, std::span<const int> awaited) const;

  // Forgets the points that all of `awaited`, which are those that are still there, have left behind: until then the
  // one that is behind may become the chief, whose weights are evaluated.
  void forget_what_is_behind(std::span<const int> awaited);

 private:
  std::size_t size_;
  std::map<std::int64_t, std::map<int, std::vector<float>>> states_;  // by point and rank
};

}  // namespace syncopate::experiments
