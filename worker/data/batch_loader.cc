#include "worker/data/batch_loader.h"

#include <fmt/format.h>

#include <algorithm>
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

// Parts of every W-th sample, as tf.data's shard deals them out.
SampleParts strided_parts(std::int64_t samples, int workers) {
  SampleParts parts(static_cast<std::size_t>(samples));
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    parts[static_cast<std::size_t>(sample)] = static_cast<int>(sample % workers);
  }
  return parts;
}

Permutation permutation_of(const BatchOrder& order, std::int64_t epoch) {
  Permutation permutation(static_cast<std::size_t>(order.dataset_size));
  if (order.shuffle == Shuffle::kOff) {
    std::iota(permutation.begin(), permutation.end(), std::int64_t{0});
  } else {
    const bool is_own = order.shuffle == Shuffle::kWorker;
    epoch_permutation(is_own ? seed_of_worker(order.seed, order.rank) : order.seed, epoch, permutation);
  }
  if (order.parts) {
    interleave_parts(*order.parts, order.workers, permutation);
  } else if (order.shuffle == Shuffle::kShard) {
    interleave_parts(strided_parts(order.dataset_size, order.workers), order.workers, permutation);
  }
  return permutation;
}

// Loaders of one program that read the same epoch share its permutation, as the many workers of a simulated cluster do.
// Parts live as long as a permutation that is in their order, whose loader has them: so their address names them.
std::shared_ptr<const Permutation> shared_permutation(const BatchOrder& order, std::int64_t epoch) {
  using Key = std::tuple<std::uint64_t, std::int64_t, std::int64_t, const SampleParts*, int, Shuffle, int>;
  static std::mutex mutex;
  static std::map<Key, std::weak_ptr<const Permutation>> known;
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& one) { return one.second.expired(); });
  // Without parts the order is that of any number.
  const int workers = order.parts || order.shuffle == Shuffle::kShard ? order.workers : 0;
  const int rank = order.shuffle == Shuffle::kWorker ? order.rank : 0;
  std::weak_ptr<const Permutation>& kept =
      known[{order.seed, epoch, order.dataset_size, order.parts.get(), workers, order.shuffle, rank}];
  if (std::shared_ptr<const Permutation> permutation = kept.lock()) return permutation;
  const auto made = std::make_shared<const Permutation>(permutation_of(order, epoch));
  kept = made;
  return made;
}

}  // namespace

std::uint64_t seed_of_worker(std::uint64_t seed, int rank) {
  constexpr std::uint64_t kStreamOfWorkers = 0x776F726B65727Bull << 8;
  return Random(seed, kStreamOfWorkers + static_cast<std::uint64_t>(rank)).next();
}

void batch_indices(const BatchOrder& order, std::span<const std::int64_t> permutation, std::int64_t step,
                   std::span<std::int64_t> indices) {
  assert(step >= 0 && step < order.steps_per_epoch());
  assert(static_cast<std::int64_t>(permutation.size()) == order.dataset_size);
  assert(indices.size() == static_cast<std::size_t>(order.batch_size));
  const auto workers = static_cast<std::size_t>(order.workers);
  const std::size_t first =
      static_cast<std::size_t>(step) * indices.size() * workers + static_cast<std::size_t>(order.rank);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::size_t place = first + i * workers;
    indices[i] = place < permutation.size() ? permutation[place] : -1;
  }
}

void read_batch(const Dataset& dataset, std::span<const std::int64_t> indices, std::int64_t epoch,
                const SampleRoom& to) {
  const SampleForm& form = dataset.form();
  const auto values = static_cast<std::size_t>(form.values()), ids = static_cast<std::size_t>(form.id_columns()),
             labels = static_cast<std::size_t>(form.labels);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const SampleRoom place{.values = to.values.subspan(i * values, values),
                           .ids = to.ids.subspan(i * ids, ids),
                           .labels = to.labels.subspan(i * labels, labels),
                           .targets = form.regression ? to.targets.subspan(i, 1) : std::span<float>()};
    if (indices[i] >= 0) {
      dataset.read(indices[i], epoch, place);
    } else {
      std::ranges::fill(place.values, 0.0f);
      std::ranges::fill(place.ids, 0);
      std::ranges::fill(place.labels, -1);
      std::ranges::fill(place.targets, 0.0f);
    }
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
    assert(order.shuffle != Shuffle::kWorker || (!by_order && order.drop_last));
    static_assert(sizeof(int) == sizeof(float));
    const SampleForm& form = dataset.form();
    const std::size_t values = indices_.size() * static_cast<std::size_t>(form.values()),
                      ids = indices_.size() * static_cast<std::size_t>(form.id_columns()),
                      labels = indices_.size() * static_cast<std::size_t>(form.labels),
                      targets = form.regression ? indices_.size() : 0;
    const auto slots = static_cast<std::size_t>(depth) + 1;
    const std::size_t slot_size = padded(values) + padded(ids) + padded(labels) + padded(targets);
    memory_ = AlignedBuffer(slots * slot_size);
    for (std::size_t i = 0; i < slots; ++i) {
      float* const begin = memory_.data() + i * slot_size;
      int* const whole_numbers = reinterpret_cast<int*>(begin + padded(values));
      slots_.push_back({.room = {.values = {begin, values},
                                 .ids = {whole_numbers, ids},
                                 .labels = {whole_numbers + padded(ids), labels},
                                 .targets = {begin + slot_size - padded(targets), targets}}});
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
    const Slot& slot = slot_of(taken_++);
    if (sleeping_ && may_go_on()) monitor_->notify_all();
    return {.values = slot.room.values,
            .labels = slot.room.labels,
            .ids = slot.room.ids,
            .targets = slot.room.targets,
            .costs = slot.costs,
            .empty_places = slot.empty_places,
            .weight = slot.weight};
  }

  std::span<std::byte> memory() { return std::as_writable_bytes(memory_.span()); }

 private:
  // So that what follows begins on a cache line.
  static std::size_t padded(std::size_t elements) { return (elements + kAlignment - 1) / kAlignment * kAlignment; }

  struct Slot {
    SampleRoom room;
    std::vector<float> costs;  // empty: all are equal
    int empty_places = 0;
    double weight = 1;
  };

  Slot& slot_of(std::int64_t batch) { return slots_[static_cast<std::size_t>(batch) % slots_.size()]; }
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

  void prepare(std::int64_t number, Slot& to) {
    const std::int64_t global = number / order_.workers;
    if (order_.shuffle == Shuffle::kWorker) return prepare_own(global, to);
    const std::int64_t step = global % order_.steps_per_epoch(), epoch = global / order_.steps_per_epoch();
    permute(epoch);
    BatchOrder part = order_;
    part.rank = static_cast<int>(number % order_.workers);
    batch_indices(part, *permutation_, step, indices_);
    read_batch(dataset_, indices_, epoch, to.room);
    price(to);
    to.empty_places = static_cast<int>(std::ranges::count(indices_, -1));
    to.weight = static_cast<double>(order_.global_batch_size()) / static_cast<double>(order_.samples_in(step));
  }

  // The worker's permutations are sequences of batches that nobody else has a part of.
  void prepare_own(std::int64_t batch, Slot& to) {
    const BatchOrder alone{.dataset_size = order_.dataset_size, .batch_size = order_.batch_size};
    const std::int64_t pass = batch / alone.steps_per_epoch();
    permute(pass);
    batch_indices(alone, *permutation_, batch % alone.steps_per_epoch(), indices_);
    read_batch(dataset_, indices_, pass, to.room);
    price(to);
  }

  void price(Slot& to) const {
    to.costs.clear();
    if (order_.costs.are_equal()) return;
    for (const std::int64_t index : indices_) {
      to.costs.push_back(index < 0 ? 0.0f : static_cast<float>(order_.costs.of(order_.seed, index)));
    }
  }

  void permute(std::int64_t epoch) {
    if (permuted_ == epoch) return;
    const BatchOrder as_they_lie{.dataset_size = order_.dataset_size, .shuffle = Shuffle::kOff};
    const bool says_nothing = dataset_.is_blank() && order_.costs.are_equal();
    permutation_ = says_nothing ? shared_permutation(as_they_lie, 0) : shared_permutation(order_, epoch);
    permuted_ = epoch;
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
  std::vector<Slot> slots_;  // in memory_; a slot is the prefetch thread's until its batch is counted in prepared_
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
