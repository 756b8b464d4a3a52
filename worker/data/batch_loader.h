// BatchLoader: the batches of one worker, in the one order that all modes share, prefetched by a thread of its own.
//
// One seed gives one permutation of the training set per epoch. The global batch number g of an epoch is the
// permutation's elements [g·W·B, (g+1)·W·B); worker r of W takes every W-th of them, beginning with the r-th. Samples
// that do not fill a global batch are left out of that epoch, or make a last one of their own: then some places of its
// batches are empty.
//
// Where each worker has a part of the training set to itself (label_parts.h, Shuffle::kShard), the permutation is first
// reordered so that the same rule gives each worker samples of its own part alone. Under Shuffle::kWorker each worker
// has permutations of its own, whose elements it takes one after the other; what does not fill a batch of its own is
// left out of that permutation, and a new one begins whenever one is used up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/status.h"
#include "common/threads.h"
#include "worker/batch_source.h"
#include "worker/data/dataset.h"
#include "worker/data/label_parts.h"
#include "worker/data/sample_costs.h"
#include "worker/data/shuffle.h"

namespace syncopate::worker {

struct BatchOrder {
  std::uint64_t seed = 1;
  std::int64_t dataset_size = 0;
  int batch_size = 1;                             // B, per worker
  int rank = 0;                                   // r
  int workers = 1;                                // W
  std::shared_ptr<const SampleParts> parts = {};  // of the workers, by sample; none: any worker trains any sample
  Shuffle shuffle = Shuffle::kGlobal;             // no other but kOff together with parts
  SampleCosts costs = {};                         // of the samples
  bool drop_last = true;  // whether what does not fill a global batch is left out; if not, all parts are of any worker

  std::int64_t global_batch_size() const { return static_cast<std::int64_t>(batch_size) * workers; }
  std::int64_t steps_per_epoch() const {
    return (dataset_size + (drop_last ? 0 : global_batch_size() - 1)) / global_batch_size();
  }
  // Returns how many samples global batch `step` of an epoch has.
  std::int64_t samples_in(std::int64_t step) const {
    return std::min(global_batch_size(), dataset_size - step * global_batch_size());
  }
};

// Fails with invalid argument if the dataset does not fill one global batch: an epoch would have no step.
Status check_fills_a_batch(const BatchOrder& order);

// Writes the permutation of 0 .. permutation.size()-1 for one epoch: Fisher and Yates' shuffle (Knuth, The Art of
// Computer Programming 2, algorithm 3.4.2P), the same on every machine. Pure.
void epoch_permutation(std::uint64_t seed, std::int64_t epoch, std::span<std::int64_t> permutation);
// Writes the order.batch_size dataset indices of this worker's batch `step` (within the epoch), and -1 for empty
// places, which come last. `permutation` is that of the epoch. Not for Shuffle::kWorker. Pure.
void batch_indices(const BatchOrder& order, std::span<const std::int64_t> permutation, std::int64_t step,
                   std::span<std::int64_t> indices);

// Returns the seed of a worker's own permutations under Shuffle::kWorker. Pure.
std::uint64_t seed_of_worker(std::uint64_t seed, int rank);

// Reads samples `indices` of `epoch` one after the other into `to`. An empty place has zeros, and labels of -1.
// Allocates nothing.
void read_batch(const Dataset& dataset, std::span<const std::int64_t> indices, std::int64_t epoch,
                const SampleRoom& to);

class BatchLoader final : public BatchSource {
 public:
  // The dataset must outlive the loader, and hold at least one global batch. The constructor starts the prefetch
  // thread, which keeps up to `depth` batches ready; it sleeps until half of them are taken, so that it is woken once
  // for several batches. With `by_order` it prepares the ordered batches, and otherwise those of order.rank, one after
  // the other. `threads`, to which the prefetch thread and its caller belong, outlives the loader.
  BatchLoader(const Dataset& dataset, const BatchOrder& order, int depth = 8, bool by_order = false,
              Threads& threads = os_threads());
  // Ends the thread, at the latest when its current batch is done.
  ~BatchLoader() override;

  // Returns the next batch, epoch after epoch without end. Valid until the next call. Waits for the prefetch thread.
  // One thread calls this and the following functions.
  BatchView next() override;
  void seek(std::int64_t step) override;
  void order(std::int64_t number) override;
  void forget_orders() override;
  std::span<std::byte> memory() override;

 private:
  class Prefetcher;
  std::unique_ptr<Prefetcher> prefetcher_;
};

}  // namespace syncopate::worker
