#include "experiments/cluster/simulated/simulated_schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "allreduce/collective/part_header.h"
#include "allreduce/schedule/timetable.h"
#include "common/float_loops.h"

namespace syncopate::experiments {

using allreduce::ReceivePart;
using allreduce::SendPart;

SimulatedSchedules::SimulatedSchedules(simulation::World& world, simulation::SimulatedWire& wire, std::size_t group,
                                       int ranks, std::optional<RingPrices> ring)
    : world_(world),
      wire_(wire),
      group_(group),
      ring_(std::move(ring)),
      ranks_(static_cast<std::size_t>(ranks)),
      waits_for_(ranks_.size(), 1) {}

Status SimulatedSchedules::play(int rank, const allreduce::Schedule& schedule, std::span<float> buffer,
                                TimePoint deadline) {
  Rank& own = of(rank);
  own.schedule = &schedule;
  own.step = 0;
  own.has_sent = false;
  own.buffer = buffer;
  own.parts.clear();
  move_on(rank);
  Status status = wait(rank, deadline, [&] { return is_through(own); });
  own.schedule = nullptr;
  // Until now those who take parts have read them where they lie, which no step has changed meanwhile.
  for (const std::uint32_t part : own.parts) {
    if (parts_[part].from == rank && parts_[part].operation == own.finished) keep(parts_[part]);
  }
  if (status.ok()) ++own.finished;
  return status;
}

void SimulatedSchedules::move_on(int rank) {
  Rank& own = of(rank);
  if (own.schedule == nullptr || own.is_adding) return;
  own.awaits = -1;
  for (; own.step < own.schedule->size(); ++own.step, own.has_sent = false) {
    const allreduce::ScheduleStep& step = (*own.schedule)[own.step];
    if (step.send && !std::exchange(own.has_sent, true)) send(rank, *step.send);
    if (!step.receive) continue;
    if (!take(rank, *step.receive)) {
      own.awaits = step.receive->peer;
      return;
    }
    if (step.receive->then != ReceivePart::Then::kReduce) continue;
    const Duration adds = world_.time_for(Processing::kSum, step.receive->range.size() * sizeof(float));
    if (adds == Duration::zero()) continue;
    ++own.step;
    own.has_sent = false;
    own.is_adding = true;
    world_.at(world_.now() + adds, [this, rank] {
      of(rank).is_adding = false;
      move_on(rank);
    });
    return;
  }
  if (is_through(own) && own.waiter) world_.wake(*own.waiter);
}

void SimulatedSchedules::send(int rank, const SendPart& part) {
  Rank& own = of(rank);
  const std::uint32_t number = new_part(rank, slice(own.buffer, part.range), part.copied);
  if (part.peer == rank) return own.to_itself.push_back(number);
  own.counters.payload_bytes_out += static_cast<std::int64_t>(part.range.size() * sizeof(float));
  ++own.unsent;
  const int connection = wire_.connection(group_, rank, part.peer);
  parts_[number].connection = connection;
  own.parts.push_back(number);
  wire_.send(connection, sizeof(allreduce::PartHeader), part.range.size() * sizeof(float), *this, number);
}

std::uint32_t SimulatedSchedules::new_part(int from, std::span<const float> values, bool copied) {
  if (free_parts_.empty()) {
    free_parts_.push_back(static_cast<std::uint32_t>(parts_.size()));
    parts_.emplace_back();
  }
  const std::uint32_t number = free_parts_.back();
  free_parts_.pop_back();
  parts_[number] = {.from = from, .operation = of(from).finished, .values = values};
  if (copied) keep(parts_[number]);
  return number;
}

// The sender may change its buffer from now on.
void SimulatedSchedules::keep(Part& part) {
  if (part.values.empty() || part.copy.size() > 0 || SharedZeros::holds(part.values.data())) return;
  part.copy = AlignedBuffer(part.values.size());
  std::ranges::copy(part.values, part.copy.data());
  part.values = part.copy.span();
}

void SimulatedSchedules::sent(std::uint32_t part) {
  const int rank = parts_[part].from;
  Rank& from = of(rank);
  if (--from.unsent == 0 && from.schedule != nullptr && is_through(from) && from.waiter) world_.wake(*from.waiter);
}

void SimulatedSchedules::arrived(std::uint32_t part) {
  const int connection = parts_[part].connection;
  Arrivals& arrivals = arrivals_of(connection);
  (arrivals.first == kNone ? arrivals.first : parts_[arrivals.last].next) = part;
  arrivals.last = part;
  const int to = wire_.receiver(connection);
  if (of(to).awaits == parts_[part].from) move_on(to);
}

SimulatedSchedules::Arrivals& SimulatedSchedules::arrivals_of(int connection) {
  const auto number = static_cast<std::size_t>(connection);
  if (number >= arrivals_.size()) arrivals_.resize(number + 1);
  return arrivals_[number];
}

bool SimulatedSchedules::take(int rank, const ReceivePart& part) {
  Rank& own = of(rank);
  std::uint32_t number = kNone;
  if (part.peer == rank) {
    number = own.to_itself.front();
    own.to_itself.pop_front();
  } else {
    Arrivals& arrivals = arrivals_of(wire_.connection(group_, part.peer, rank));
    if (arrivals.first == kNone) return false;
    number = std::exchange(arrivals.first, parts_[arrivals.first].next);
    own.counters.payload_bytes_in += static_cast<std::int64_t>(part.range.size() * sizeof(float));
  }
  const std::span<const float> values = parts_[number].values;
  const std::span<float> to = slice(own.buffer, part.range);
  const bool are_zeros = SharedZeros::holds(to.data()) && SharedZeros::holds(values.data());
  if (!are_zeros && values.size() == to.size()) {
    if (part.then == ReceivePart::Then::kReduce) {
      add(values.data(), to.data(), to.size());
    } else {
      std::ranges::copy(values, to.begin());
    }
  }
  parts_[number].copy = {};
  parts_[number].from = -1;
  free_parts_.push_back(number);
  return true;
}

template <typename Done>
Status SimulatedSchedules::wait(int rank, TimePoint deadline, const Done& done) {
  Rank& own = of(rank);
  while (!done()) {
    if (own.interrupted) return Status::cancelled("interrupted");
    if (world_.now() >= deadline) {
      return Status::deadline_exceeded(fmt::format("waiting for rank {}: no message", waiting_for(rank)));
    }
    own.waiter = world_.current();
    world_.suspend_until(own.leaves ? std::min(*own.leaves, deadline) : deadline);
    own.waiter.reset();
  }
  return Status();
}

int SimulatedSchedules::waiting_for(int rank) const {
  if (of(rank).schedule != nullptr) return of(rank).awaits;
  return waits_for_[static_cast<std::size_t>(rank)] == 0 ? missing() : -1;
}

void SimulatedSchedules::interrupt(int rank) {
  of(rank).interrupted = true;
  if (const auto waiter = of(rank).waiter) world_.wake(*waiter);
}

// Another part could stand before a ring's on the same link. Behind a ring there are none: nobody has left it before
// all had entered, and its own last parts are on links that nobody else has.
bool SimulatedSchedules::is_priced(int rank) {
  if (!ring_) return false;
  const std::size_t operation = of(rank).finished;
  const auto [found, is_first] = decided_.try_emplace(operation);
  if (is_first) {
    const auto is_there = [&](const Rank& each) { return each.finished == operation && each.schedule == nullptr; };
    const bool is_behind_a_ring = last_ring_ && *last_ring_ + 1 == operation;
    found->second = wire_.messages_under_way() == 0 &&
                    (is_behind_a_ring || (wire_.parcels_under_way() == 0 && std::ranges::all_of(ranks_, is_there)));
    decided_.erase(decided_.begin(), decided_.lower_bound(operation > 0 ? operation - 1 : 0));
  }
  return found->second;
}

int SimulatedSchedules::missing() const {
  if (entered_ == 0) return -1;
  return static_cast<int>(std::ranges::find(waits_for_, 1) - waits_for_.begin());
}

std::optional<Status> SimulatedSchedules::sum_by_ring(int rank, std::span<float> buffer, TimePoint deadline) {
  Rank& own = of(rank);
  const std::size_t operation = own.finished;
  if (!is_priced(rank)) {
    last_ring_ = operation;
    return std::nullopt;
  }
  own.entered = world_.now();
  own.buffer = buffer;
  own.leaves.reset();
  waits_for_[static_cast<std::size_t>(rank)] = 0;
  if (++entered_ == ranks_.size()) price();
  Status status = wait(rank, deadline, [&] { return own.leaves && world_.now() >= *own.leaves; });
  own.leaves.reset();
  if (!status.ok()) return status;
  ++own.finished;
  last_ring_ = operation;
  const allreduce::RingTimes& times = times_of(buffer.size());
  own.counters.payload_bytes_out += times.bytes_sent(rank);
  own.counters.payload_bytes_in += times.bytes_received(rank);
  return status;
}

void SimulatedSchedules::price() {
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
void SimulatedSchedules::add_up() const {
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

const allreduce::RingTimes& SimulatedSchedules::times_of(std::size_t length) {
  const auto found = times_.find(length);
  if (found != times_.end()) return found->second;
  return times_.try_emplace(length, static_cast<int>(ranks_.size()), length, ring_->segment, ring_->costs)
      .first->second;
}

}  // namespace syncopate::experiments
