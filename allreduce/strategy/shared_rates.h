// SharedRates: the learning rates at which ranks make a step, which go round behind its gradients: a number a rank, all
// others being zero, so that the sum has those of all. One thread at a time.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "common/status.h"

namespace syncopate::allreduce {

class SharedRates {
 public:
  // How many floats they take for so many ranks: whole cache lines, as ranges of arenas have.
  static std::size_t floats(int ranks) { return (static_cast<std::size_t>(ranks) + 15) / 16 * 16; }

  SharedRates() = default;  // of nobody
  // `place` is summed over all ranks between say() and check().
  SharedRates(std::span<float> place, int rank, int ranks)
      : place_(place.first(static_cast<std::size_t>(ranks))), rank_(static_cast<std::size_t>(rank)) {}

  void say(double rate) {
    std::ranges::fill(place_, 0.0f);
    if (!place_.empty()) place_[rank_] = static_cast<float>(rate);
  }
  // Fails with invalid argument, naming a rank, unless all have said the same.
  Status check() const {
    const auto other = std::ranges::find_if(place_, [this](float rate) { return rate != place_[rank_]; });
    if (other == place_.end()) return Status();
    return Status::invalid_argument(
        fmt::format("rank {} makes this step at a learning rate of {}, rank {} at {}: all ranks must have the same",
                    other - place_.begin(), *other, rank_, place_[rank_]));
  }

 private:
  std::span<float> place_;
  std::size_t rank_ = 0;
};

}  // namespace syncopate::allreduce
