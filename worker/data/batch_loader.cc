#include "worker/data/batch_loader.h"

#include <fmt/format.h>

#include <cassert>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "common/os/aligned_buffer.h"
#include "common/param_layout.h"
#include "common/random.h"
#include "common/thread_failure.h"

namespace syncopate::worker {

Status check_fills_a_batch(const BatchOrder& order) {
  if (order.steps_per_epoch() > 0) return {};
  return Status::invalid_argument(fmt::format(
      "{} training samples do not fill one batch of {} on each of {} workers: use a smaller --batch-size or "
      "fewer --workers",
      order.dataset_size, order.batch_size, order.workers));
}

void epoch_permutation(std::uint64_t seed, std::int64_t epoch, std::span<std::int64_t> permutation) {
  constexpr std::uint64_t kStreamOfOrder = 0x6F72646572ull << 16;  // apart from the streams of weights
  std::iota(permutation.begin(), permutation.end(), std::int64_t{0});
  Random random(seed, kStreamOfOrder + static_cast<std::uint64_t>(epoch));
  for (std::size_t i = permutation.size(); i > 1; --i) std::swap(permutation[i - 1], permutation[random.below(i)]);
}

namespace {

using Permutation = std::vector<std::int64_t>;

// Loaders of one program that read the same epoch share its permutation, as the many workers of a simulated cluster do.
// Parts live as long as a permutation that is in their order, whose loader has them: so their address names them.
std::shared_ptr<const Permutation> shared_permutation(const BatchOrder& order, std::int64_t epoch) {
  using Key = std::tuple<std::uint64_t, std::int64_t, std::int64_t, const SampleParts*, int>;
  static std::mutex mutex;
  static std::map<Key, std::weak_ptr<const Permutation>> known;
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& one) { return one.second.expired(); });
  const int workers = order.parts ? order.workers : 0;  // without parts the order is that of any number
  std::weak_ptr<const Permutation>& kept = known[{order.seed, epoch, order.dataset_size, order.parts.get(), workers}];
  if (std::shared_ptr<const Permutation> permutation = kept.lock()) return permutation;
  auto made = std::make_shared<Permutation>(static_cast<std::size_t>(order.dataset_size));
  epoch_permutation(order.seed, epoch, *made);
  if (order.parts) interleave_parts(*order.parts, order.workers, *made);
  kept = made;
  return made;
}

}  // namespace

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

// Batches live in a ring of depth + 1 slots, of which one is the caller's. Both threads count batches from step 0, or
// from the first that was ordered; the n-th is in slot n % slots.
class BatchLoader::Prefetcher {
 public:
  Prefetcher(const Dataset& dataset, const BatchOrder& order, int depth, bool by_order, Threads& threads)
      : threads_(threads),
        dataset_(dataset),
        order_(order),
        depth_(depth),
        by_order_(by_order),
        indices_(static_cast<std::size_t>(order.batch_size)),
        monitor_(threads.make_monitor()) {
    assert(depth >= 1 && order.dataset_size <= dataset.size() && order.steps_per_epoch() >= 1);
    assert(!order.parts || static_cast<std::int64_t>(order.parts->size()) == order.dataset_size);
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

  ~Prefetcher() { end(); }

  void seek(std::int64_t step) {
    assert(!by_order_);
    if (step != taken_) go_on_from(step);
  }

  void add_order(std::int64_t number) {
    assert(by_order_ && number >= 0);
    {
      const std::lock_guard lock(*monitor_);
      ordered_.push_back(number);
      monitor_->notify_all();
    }
  }

  void forget_orders() {
    assert(by_order_);
    go_on_from(taken_);
  }

  BatchView next() {
    const std::lock_guard lock(*monitor_);
    while (prepared_ <= taken_ && !failure_.any()) monitor_->wait();
    if (prepared_ <= taken_) failure_.rethrow();
    const SampleRoom& slot = slot_of(taken_++);
    if (sleeping_ && may_go_on()) monitor_->notify_all();
    return {slot.values, slot.labels, slot.ids};
  }

  std::span<std::byte> memory() { return std::as_writable_bytes(memory_.span()); }

 private:
  // So that what follows begins on a cache line.
  static std::size_t padded(std::size_t elements) { return (elements + kAlignment - 1) / kAlignment * kAlignment; }

  const SampleRoom& slot_of(std::int64_t batch) const {
    return slots_[static_cast<std::size_t>(batch) % slots_.size()];
  }
  bool has_work() const { return !by_order_ || !ordered_.empty(); }
  bool may_go_on() const { return has_work() && prepared_ - taken_ <= depth_ / 2; }

  void start() {
    thread_ = threads_.start("batch loader", [this] { run(); });
  }

  void end() {
    {
      const std::lock_guard lock(*monitor_);
      stops_ = true;
      monitor_->notify_all();
    }
    thread_.reset();
    stops_ = false;
  }

  void go_on_from(std::int64_t batch) {
    end();
    prepared_ = taken_ = batch;
    ordered_.clear();
    permuted_ = -1;
    start();
  }

  void run() {
    std::int64_t batch = prepared_;
    for (; const std::optional<std::int64_t> number = wait_for_number(batch); ++batch) {
      const bool is_prepared = failure_.carry([&] { prepare(*number, slot_of(batch)); });
      const std::lock_guard lock(*monitor_);
      if (is_prepared) ++prepared_;
      monitor_->notify_all();
      if (!is_prepared) return;
    }
  }

  // Returns the number of the `batch`-th once there is room for it; none when it must stop.
  std::optional<std::int64_t> wait_for_number(std::int64_t batch) {
    const std::lock_guard lock(*monitor_);
    if (prepared_ - taken_ == depth_ || !has_work()) {
      sleeping_ = true;
      while (!stops_ && !may_go_on()) monitor_->wait();
      sleeping_ = false;
    }
    if (stops_) return std::nullopt;
    if (!by_order_) return batch * order_.workers + order_.rank;
    const std::int64_t number = ordered_.front();
    ordered_.pop_front();
    return number;
  }

  void prepare(std::int64_t number, const SampleRoom& to) {
    const std::int64_t global = number / order_.workers;
    const std::int64_t step = global % order_.steps_per_epoch(), epoch = global / order_.steps_per_epoch();
    if (permuted_ != epoch) {
      permutation_ = shared_permutation(order_, epoch);
      permuted_ = epoch;
    }
    BatchOrder part = order_;
    part.rank = static_cast<int>(number % order_.workers);
    batch_indices(part, *permutation_, step, indices_);
    read_batch(dataset_, indices_, epoch, to);
  }

  Threads& threads_;
  const Dataset& dataset_;
  const BatchOrder order_;
  const std::int64_t depth_;
  const bool by_order_;

  // The prefetch thread's own, while there is one.
  std::shared_ptr<const Permutation> permutation_;
  std::int64_t permuted_ = -1;  // the epoch that it is of
  std::vector<std::int64_t> indices_;

  AlignedBuffer memory_;
  std::vector<SampleRoom>
      slots_;  // in memory_; a slot is the prefetch thread's until its batch is counted in prepared_
  const std::unique_ptr<Monitor> monitor_;  // guards the next four
  std::int64_t prepared_ = 0, taken_ = 0;   // batches
  std::deque<std::int64_t> ordered_;        // numbers of what is to be prepared next
  bool sleeping_ = false;
  bool stops_ = false;
  ThreadFailure failure_;                    // of the prefetch thread
  std::unique_ptr<Threads::Handle> thread_;  // last, so that it ends before what it uses
};

BatchLoader::BatchLoader(const Dataset& dataset, const BatchOrder& order, int depth, bool by_order, Threads& threads)
    : prefetcher_(std::make_unique<Prefetcher>(dataset, order, depth, by_order, threads)) {}

BatchLoader::~BatchLoader() = default;

BatchView BatchLoader::next() { return prefetcher_->next(); }

void BatchLoader::seek(std::int64_t step) { prefetcher_->seek(step); }

void BatchLoader::order(std::int64_t number) { prefetcher_->add_order(number); }

void BatchLoader::forget_orders() { prefetcher_->forget_orders(); }

std::span<std::byte> BatchLoader::memory() { return prefetcher_->memory(); }

}  // namespace syncopate::worker
