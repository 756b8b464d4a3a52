#include "experiments/cluster/simulated/priced_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "allreduce/schedule/timetable.h"
#include "common/float_loops.h"
#include "common/os/aligned_buffer.h"

namespace syncopate::experiments {

using allreduce::ScheduleKind;

class PricedRing::Member final : public allreduce::Collective {
 public:
  Member(std::shared_ptr<PricedRing> ring, std::unique_ptr<allreduce::ScheduleCollective> collective)
      : ring_(std::move(ring)), collective_(std::move(collective)) {}

  int rank() const override { return collective_->rank(); }
  int size() const override { return collective_->size(); }
  const char* name() const override { return collective_->name(); }
  Result<std::span<float>> allocate(std::size_t elements) override { return collective_->allocate(elements); }

  Status all_reduce(std::span<float> buffer, TimePoint deadline) override {
    const bool is_ring = !buffer.empty() && collective_->kind_for(buffer.size_bytes()) == ScheduleKind::kRing;
    if (!is_ring || !ring_->is_priced(rank())) {
      const Status status = by_messages([&] { return collective_->all_reduce(buffer, deadline); });
      if (is_ring) ring_->last_ring_ = ring_->rank(rank()).finished;
      ++ring_->rank(rank()).finished;
      return status;
    }
    is_in_ring_ = true;
    const Status status = ring_->all_reduce(rank(), buffer, deadline, interrupted_);
    is_in_ring_ = false;
    if (!status.ok()) return waited_for(ring_->missing(), status.in("all_reduce"));
    const allreduce::RingTimes& times = ring_->times_of(buffer.size());
    priced_.payload_bytes_out += times.bytes_sent(rank());
    priced_.payload_bytes_in += times.bytes_received(rank());
    return status;
  }
  Status broadcast(std::span<float> buffer, int root, TimePoint deadline) override {
    return of_all([&] { return collective_->broadcast(buffer, root, deadline); });
  }
  Status barrier(TimePoint deadline) override {
    return of_all([&] { return collective_->barrier(deadline); });
  }
  Status reduce_pair(std::span<float> buffer, int partner, TimePoint deadline) override {
    ring_->last_ring_.reset();
    return by_messages([&] { return collective_->reduce_pair(buffer, partner, deadline); });
  }
  Status all_to_all(std::span<const allreduce::Bytes> given, std::span<allreduce::Bytes> taken,
                    TimePoint deadline) override {
    return of_all([&] { return collective_->all_to_all(given, taken, deadline); });
  }

  int waiting_for() const override { return is_in_ring_ ? ring_->missing() : collective_->waiting_for(); }
  void interrupt() override {
    interrupted_ = true;
    if (const auto waiter = ring_->rank(rank()).waiter) ring_->world_.wake(*waiter);
    collective_->interrupt();
  }
  TransportCounters counters() const override {
    TransportCounters counters = collective_->counters();
    counters.payload_bytes_out += priced_.payload_bytes_out;
    counters.payload_bytes_in += priced_.payload_bytes_in;
    return counters;
  }

 private:
  template <typename Operation>
  Status by_messages(const Operation& operation) {
    Rank& own = ring_->rank(rank());
    own.by_messages = true;
    Status status = operation();
    own.by_messages = false;
    return waited_for(collective_->missed(), std::move(status));
  }
  template <typename Operation>
  Status of_all(const Operation& operation) {
    Status status = by_messages(operation);
    ++ring_->rank(rank()).finished;
    return status;
  }

  const std::shared_ptr<PricedRing> ring_;
  const std::unique_ptr<allreduce::ScheduleCollective> collective_;
  TransportCounters priced_;
  bool is_in_ring_ = false;
  bool interrupted_ = false;
};

PricedRing::PricedRing(simulation::World& world, int ranks, std::size_t segment, allreduce::RingCosts costs)
    : world_(world),
      segment_(segment),
      costs_(std::move(costs)),
      ranks_(static_cast<std::size_t>(ranks)),
      waits_for_(ranks_.size(), 1) {}

std::unique_ptr<allreduce::Collective> PricedRing::join(std::shared_ptr<PricedRing> ring,
                                                        std::unique_ptr<allreduce::ScheduleCollective> collective) {
  return std::make_unique<Member>(std::move(ring), std::move(collective));
}

// Messages of another operation could stand before a ring's on the same link. Behind a ring there are none: nobody has
// left it before all had entered, and its own last messages are on links that nobody else has.
bool PricedRing::is_priced(int number) {
  const std::size_t operation = rank(number).finished;
  const auto [found, is_first] = decided_.try_emplace(operation);
  if (is_first) {
    const auto is_through = [&](const Rank& each) { return each.finished == operation && !each.by_messages; };
    found->second = (last_ring_ && *last_ring_ + 1 == operation) || std::ranges::all_of(ranks_, is_through);
    decided_.erase(decided_.begin(), decided_.lower_bound(operation > 0 ? operation - 1 : 0));
  }
  return found->second;
}

int PricedRing::missing() const {
  if (entered_ == 0) return -1;
  return static_cast<int>(std::ranges::find(waits_for_, 1) - waits_for_.begin());
}

Status PricedRing::all_reduce(int number, std::span<float> buffer, TimePoint deadline, const bool& interrupted) {
  Rank& own = rank(number);
  own.entered = world_.now();
  own.buffer = buffer;
  own.leaves.reset();
  waits_for_[static_cast<std::size_t>(number)] = 0;
  if (++entered_ == ranks_.size()) price();
  while (!own.leaves || world_.now() < *own.leaves) {
    if (interrupted) return Status::cancelled("interrupted");
    if (world_.now() >= deadline) {
      return Status::deadline_exceeded(fmt::format("waiting for rank {}: no message", missing()));
    }
    own.waiter = world_.current();
    world_.suspend_until(own.leaves ? std::min(*own.leaves, deadline) : deadline);
    own.waiter.reset();
  }
  last_ring_ = own.finished++;
  return Status();
}

void PricedRing::price() {
  entered_ = 0;
  std::ranges::fill(waits_for_, 1);
  add_up();
  std::vector<TimePoint> entered;
  for (const Rank& each : ranks_) entered.push_back(each.entered);
  const std::vector<TimePoint> leave = times_of(ranks_.front().buffer.size()).leave(entered);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].leaves = leave[i];
    if (const auto waiter = ranks_[i].waiter) world_.at(leave[i], [this, waiter] { world_.wake(*waiter); });
  }
}

// Chunk c is the sum of rank c's part, the next rank's, and so on.
void PricedRing::add_up() const {
  const auto holds_zeros = [](const Rank& each) { return SharedZeros::holds(each.buffer.data()); };
  if (std::ranges::all_of(ranks_, holds_zeros)) return;
  const std::size_t count = ranks_.size();
  const std::vector<Range> chunks = allreduce::cut({0, ranks_.front().buffer.size()}, count);
  for (std::size_t chunk = 0; chunk < count; ++chunk) {
    const std::span<float> sum = slice(ranks_[chunk].buffer, chunks[chunk]);
    for (std::size_t i = 1; i < count; ++i) {
      add(slice(ranks_[(chunk + i) % count].buffer, chunks[chunk]).data(), sum.data(), sum.size());
    }
    for (std::size_t i = 1; i < count; ++i) {
      std::ranges::copy(sum, slice(ranks_[(chunk + i) % count].buffer, chunks[chunk]).begin());
    }
  }
}

const allreduce::RingTimes& PricedRing::times_of(std::size_t length) {
  const auto found = times_.find(length);
  if (found != times_.end()) return found->second;
  return times_.try_emplace(length, static_cast<int>(ranks_.size()), length, segment_, costs_).first->second;
}

}  // namespace syncopate::experiments
