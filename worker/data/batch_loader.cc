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

void normalize(std::span<const std::uint8_t> bytes, std::span<float> values) {
  assert(bytes.size() == values.size());
  constexpr float kScale = 2.0f / 255.0f, kShift = -0.3f;
  for (std::size_t i = 0; i < bytes.size(); ++i) values[i] = static_cast<float>(bytes[i]) * kScale + kShift;
}

void read_batch(const Dataset& dataset, std::span<const std::int64_t> indices, std::span<std::uint8_t> scratch,
                std::span<float> images, std::span<int> labels) {
  const auto values = static_cast<std::size_t>(dataset.shape().values());
  assert(images.size() >= indices.size() * values && labels.size() >= indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    normalize(dataset.image(indices[i], scratch), images.subspan(i * values, values));
    labels[i] = dataset.label(indices[i]);
  }
}

// Batches live in a ring of depth + 1 slots, of which one is the caller's. Both threads count batches from the start;
// batch n is in slot n % slots.
class BatchLoader::Prefetcher {
 public:
  Prefetcher(const Dataset& dataset, const BatchOrder& order, int depth)
      : dataset_(dataset),
        order_(order),
        depth_(depth),
        permutation_(static_cast<std::size_t>(order.dataset_size)),
        indices_(static_cast<std::size_t>(order.batch_size)),
        scratch_(static_cast<std::size_t>(dataset.shape().values())) {
    assert(depth >= 1 && order.dataset_size <= dataset.size() && order.steps_per_epoch() >= 1);
    static_assert(sizeof(int) == sizeof(float));
    const std::size_t values = padded(indices_.size() * scratch_.size()), labels = padded(indices_.size());
    const auto slots = static_cast<std::size_t>(depth) + 1;
    memory_ = AlignedBuffer(slots * (values + labels));
    for (std::size_t i = 0; i < slots; ++i) {
      float* const begin = memory_.data() + i * (values + labels);
      slots_.push_back({.images = {begin, indices_.size() * scratch_.size()},
                        .labels = {reinterpret_cast<int*>(begin + values), indices_.size()}});
    }
    thread_ = std::jthread([this](std::stop_token stop) { run(stop); });
  }

  BatchView next() {
    std::unique_lock lock(mutex_);
    batch_ready_.wait(lock, [this] { return prepared_ > taken_; });
    const Slot& slot = slot_of(taken_++);
    const bool wake = sleeping_ && half_empty();
    lock.unlock();
    if (wake) half_empty_.notify_one();
    return {slot.images, slot.labels};
  }

  std::span<std::byte> memory() { return std::as_writable_bytes(memory_.span()); }

 private:
  struct Slot {  // in memory_
    std::span<float> images;
    std::span<int> labels;
  };

  // So that what follows begins on a cache line.
  static std::size_t padded(std::size_t elements) { return (elements + kAlignment - 1) / kAlignment * kAlignment; }

  Slot& slot_of(std::int64_t batch) { return slots_[static_cast<std::size_t>(batch) % slots_.size()]; }
  bool half_empty() const { return prepared_ - taken_ <= depth_ / 2; }

  void run(const std::stop_token& stop) {
    for (std::int64_t batch = 0; wait_for_room(stop); ++batch) {
      prepare(batch);
      const std::lock_guard lock(mutex_);
      ++prepared_;
      batch_ready_.notify_one();
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
    const std::int64_t step = batch % order_.steps_per_epoch();
    if (step == 0) epoch_permutation(order_.seed, batch / order_.steps_per_epoch(), permutation_);
    batch_indices(order_, permutation_, step, indices_);
    Slot& slot = slot_of(batch);
    read_batch(dataset_, indices_, scratch_, slot.images, slot.labels);
  }

  const Dataset& dataset_;
  const BatchOrder order_;
  const std::int64_t depth_;

  // The prefetch thread's own.
  std::vector<std::int64_t> permutation_, indices_;
  std::vector<std::uint8_t> scratch_;

  AlignedBuffer memory_;
  std::vector<Slot> slots_;  // a slot is the prefetch thread's until its batch is counted in prepared_
  std::mutex mutex_;
  std::condition_variable batch_ready_;
  std::condition_variable_any half_empty_;
  std::int64_t prepared_ = 0, taken_ = 0;  // batches, under mutex_
  bool sleeping_ = false;                  // under mutex_
  std::jthread thread_;                    // last, so that it ends before what it uses
};

BatchLoader::BatchLoader(const Dataset& dataset, const BatchOrder& order, int depth)
    : prefetcher_(std::make_unique<Prefetcher>(dataset, order, depth)) {}

BatchLoader::~BatchLoader() = default;

BatchView BatchLoader::next() { return prefetcher_->next(); }

std::span<std::byte> BatchLoader::memory() { return prefetcher_->memory(); }

}  // namespace syncopate::worker
