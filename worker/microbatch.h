// Microbatches: the parts of a worker's batch whose gradients are added up for one update.
#pragma once

#include <algorithm>
#include <span>

#include "worker/model.h"

namespace syncopate::worker {

// Returns part `number` of `count` equal parts of a batch of `samples` samples, which `count` divides. Its mean counts
// with its share of the batch, so that losses and gradients of all parts add up to those of the batch.
inline BatchView microbatch_of(const BatchView& batch, int samples, int number, int count) {
  const auto part_of = [&](auto whole) {
    const std::size_t size = whole.size() / static_cast<std::size_t>(count);
    return whole.subspan(static_cast<std::size_t>(number) * size, size);
  };
  const int size = samples / count, filled = samples - batch.empty_places - number * size;
  return {.values = part_of(batch.values),
          .labels = part_of(batch.labels),
          .ids = part_of(batch.ids),
          .targets = part_of(batch.targets),
          .costs = part_of(batch.costs),
          .empty_places = size - std::clamp(filled, 0, size),
          .weight = batch.weight / count};
}

}  // namespace syncopate::worker
