// LocalStates: what each worker's model has kept beside its weights by the end of each epoch, until it is evaluated as
// the mean over the workers. Pure: values in, values out.
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
  bool add(int rank, std::int64_t epoch, std::span<const float> state);

  // The mean over all workers that have sent their state of `epoch`, once all of `awaited` have. A worker that is lost
  // is awaited no more, and counts where it had come so far. Added up in the order of ranks: the same bits whoever came
  // first. Empty for a model that keeps nothing.
  std::optional<std::vector<float>> mean(std::int64_t epoch, std::span<const int> awaited) const;

 private:
  std::size_t size_;
  // By epoch and rank. Some kilobytes each, all kept: a worker that is far behind may become the chief, whose epochs
  // are evaluated.
  std::map<std::int64_t, std::map<int, std::vector<float>>> states_;
};

}  // namespace syncopate::experiments
