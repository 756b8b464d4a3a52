// BatchLoader: the batches of one worker, in the one order that all modes share, prepared ahead by a thread of its own.
//
// One seed gives one permutation of the training set per epoch. The global batch number g of an epoch is the
// permutation's elements [g·W·B, (g+1)·W·B); worker r of W takes every W-th of them, beginning with the r-th. What does
// not fill a global batch is left out of that epoch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/data/dataset.h"
#include "worker/model.h"

namespace syncopate::worker {

struct BatchOrder {
  std::uint64_t seed = 1;
  std::int64_t dataset_size = 0;
  int batch_size = 1;  // B, of one worker
  int rank = 0;        // r
  int workers = 1;     // W

  std::int64_t steps_per_epoch() const { return dataset_size / (static_cast<std::int64_t>(batch_size) * workers); }
};

// The dataset indices of batch `step` (within the epoch) for this worker. Pure. `permutation` is that of the epoch.
std::vector<std::int64_t> batch_indices(const BatchOrder& order, const std::vector<std::int64_t>& permutation,
                                        std::int64_t step);
// The permutation of 0 .. size-1 of one epoch: Fisher-Yates, the same on every machine.
std::vector<std::int64_t> epoch_permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t size);

// Bytes become floats as (value / 255 - 0.5) / 0.5 … the mapping is the same for training and evaluation.
void normalize(std::span<const std::uint8_t> bytes, std::span<float> values);

class BatchLoader {
 public:
  // The dataset must outlive the loader. The prefetch thread starts here and keeps at most `depth` batches ready.
  BatchLoader(const Dataset& dataset, const BatchOrder& order, int depth = 4);
  ~BatchLoader();

  // The next batch, epoch after epoch without end. Valid until the next call. Waits for the prefetch thread.
  BatchView next();

 private:
  class Prefetcher;
  std::unique_ptr<Prefetcher> prefetcher_;
};

}  // namespace syncopate::worker
