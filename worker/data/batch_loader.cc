#include "worker/data/batch_loader.h"

#include <cassert>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <stop_token>
#include <thread>
#include <utility>

#include "common/aligned_buffer.h"
#include "common/param_layout.h"
#include "common/random.h"
#include "common/thread_failure.h"

namespace syncopate::worker {

void epoch_permutation(std::uint64_t seed, std::int64_t epoch, std::span<std::int64_t> permutation) {
  constexpr std::uint64_t kStreamOfOrder = 0x6F72646572ull << 16;  // apart from the streams of weights
  std::iota(permutation.begin(), permutation.end(), std::int64_t{0});
  Random random(seed, kStreamOfOrder + static_cast<std::uint64_t>(epoch));
  for (std::size_t i = permutation.size(); i > 1; --i) std::swap(permutation[i - 1], permutation[random.below(i)]);
}

void batch_indices(const BatchOrder& order, std::span<const std::int64_t> permutation, std::int64_t step,
                   std::span<std::int64_t> indices) {
  assert(step >= 0 && step < order.steps_per_epoch());
  assert(static_cast<std::int64_t>(permutation.size()) == order.dataset_size);
  assert(indices.size() == static_cast<std::size_t>(order.batch_size));
  const auto workers = static_cast<std::size_t>(order.workers);
  const std::size_t first =
      static_cast<std::size_t>(step) * indices.size() * workers + static_cast<std::size_t>(order.rank);
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = permutation[first + i * workers];
}

void read_batch(const Dataset& dataset, std::span<const std::int64_t> indices, std::int64_t epoch,
                const SampleRoom& to) {
  const SampleForm& form = dataset.form();
  const auto values = static_cast<std::size_t>(form.values()), ids = static_cast<std::size_t>(form.id_columns()),
             labels = static_cast<std::size_t>(form.labels);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    dataset.read(indices[i], epoch,
                 {.values = to.values.subspan(i * values, values),
                  .ids = to.ids.subspan(i * ids, ids),
                  .labels = to.labels.subspan(i * labels, labels)});
  }
}

// Batches live in a ring of depth + 1 slots, of which one is the caller's. Both threads count batches from step 0;
// batch n is in slot n % slots.
class BatchLoader::Prefetcher {
 public:
  Prefetcher(const Dataset& dataset, const BatchOrder& order, int depth)
      : dataset_(dataset),
        order_(order),
        depth_(depth),
        permutation_(static_cast<std::size_t>(order.dataset_size)),
        indices_(static_cast<std::size_t>(order.batch_size)) {
    assert(depth >= 1 && order.dataset_size <= dataset.size() && order.steps_per_epoch() >= 1);
    static_assert(sizeof(int) == sizeof(float));
    const SampleForm& form = dataset.form();
    const std::size_t values = indices_.size() * static_cast<std::size_t>(form.values()),
                      ids = indices_.size() * static_cast<std::size_t>(form.id_columns()),
                      labels = indices_.size() * static_cast<std::size_t>(form.labels);
    const auto slots = static_cast<std::size_t>(depth) + 1;
    const std::size_t slot_size = padded(values) + padded(ids) + padded(labels);
    memory_ = AlignedBuffer(slots * slot_size);
    for (std::size_t i = 0; i < slots; ++i) {
      float* const begin = memory_.data() + i * slot_size;
      int* const whole_numbers = reinterpret_cast<int*>(begin + padded(values));
      slots_.push_back(
          {.values = {begin, values}, .ids = {whole_numbers, ids}, .labels = {whole_numbers + padded(ids), labels}});
    }
    start();
  }

  void seek(std::int64_t step) {
    if (step == taken_) return;
    thread_ = {};  // it has ended when that returns
    prepared_ = taken_ = step;
    shuffled_ = -1;
    start();
  }

  BatchView next() {
    std::unique_lock lock(mutex_);
    batch_ready_.wait(lock, [this] { return prepared_ > taken_ || failure_.any(); });
    if (prepared_ <= taken_) failure_.rethrow();
    const SampleRoom& slot = slot_of(taken_++);
    const bool wake = sleeping_ && half_empty();
    lock.unlock();
    if (wake) half_empty_.notify_one();
    return {slot.values, slot.labels, slot.ids};
  }

  std::span<std::byte> memory() { return std::as_writable_bytes(memory_.span()); }

 private:
  // So that what follows begins on a cache line.
  static std::size_t padded(std::size_t elements) { return (elements + kAlignment - 1) / kAlignment * kAlignment; }

  const SampleRoom& slot_of(std::int64_t batch) const {
    return slots_[static_cast<std::size_t>(batch) % slots_.size()];
  }
  bool half_empty() const { return prepared_ - taken_ <= depth_ / 2; }

  void start() {
    thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
  }

  void run(const std::stop_token& stop) {
    for (std::int64_t batch = prepared_; wait_for_room(stop); ++batch) {
      const bool is_prepared = failure_.carry([&] { prepare(batch); });
      const std::lock_guard lock(mutex_);
      if (is_prepared) ++prepared_;
      batch_ready_.notify_one();
      if (!is_prepared) return;
    }
  }

  // False when told to stop.
  bool wait_for_room(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (prepared_ - taken_ == depth_) {
      sleeping_ = true;
      half_empty_.wait(lock, stop, [this] { return half_empty(); });
      sleeping_ = false;
    }
    return !stop.stop_requested();
  }

  void prepare(std::int64_t batch) {
    const std::int64_t step = batch % order_.steps_per_epoch(), epoch = batch / order_.steps_per_epoch();
    if (shuffled_ != epoch) shuffle(epoch);
    batch_indices(order_, permutation_, step, indices_);
    read_batch(dataset_, indices_, epoch, slot_of(batch));
  }

  void shuffle(std::int64_t epoch) {
    epoch_permutation(order_.seed, epoch, permutation_);
    shuffled_ = epoch;
  }

  const Dataset& dataset_;
  const BatchOrder order_;
  const std::int64_t depth_;

  // The prefetch thread's own, while there is one.
  std::vector<std::int64_t> permutation_, indices_;
  std::int64_t shuffled_ = -1;  // the epoch that the permutation is of

  AlignedBuffer memory_;
  std::vector<SampleRoom>
      slots_;  // in memory_; a slot is the prefetch thread's until its batch is counted in prepared_
  std::mutex mutex_;
  std::condition_variable batch_ready_;
  std::condition_variable_any half_empty_;
  std::int64_t prepared_ = 0, taken_ = 0;  // batches, under mutex_
  bool sleeping_ = false;                  // under mutex_
  ThreadFailure failure_;                  // of the prefetch thread
  std::jthread thread_;                    // last, so that it ends before what it uses
};

BatchLoader::BatchLoader(const Dataset& dataset, const BatchOrder& order, int depth)
    : prefetcher_(std::make_unique<Prefetcher>(dataset, order, depth)) {}

BatchLoader::~BatchLoader() = default;

BatchView BatchLoader::next() { return prefetcher_->next(); }

void BatchLoader::seek(std::int64_t step) { prefetcher_->seek(step); }

std::span<std::byte> BatchLoader::memory() { return prefetcher_->memory(); }

}  // namespace syncopate::worker
