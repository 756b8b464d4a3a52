// RingTimes: when each rank of a ring leaves an all_reduce, from when each has entered it. Each rank's link to its
// successor is used by nobody else, so that all times follow from the schedule: a recurrence over ranks and slots, in
// arrays, where messages would take a thousand times as long. Pure.
//
// The schedule is append_ring()'s (algorithms.h): the same chunks, segments and slots, in the same order.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "common/clock.h"

namespace syncopate::allreduce {

// What parts take. A tick is a picosecond.
struct RingCosts {
  std::function<std::int64_t(std::size_t bytes)> ticks_on_link;  // of a part with so many bytes of payload; above zero
  std::int64_t ticks_of_latency = 0;                             // then, until its receiver has all of it
  std::function<Duration(std::size_t bytes)> sum;                // to add a part
};

class RingTimes {
 public:
  // A ring of two or more ranks that sum `length` elements, in parts of at most `segment` (0: of any size).
  RingTimes(int ranks, std::size_t length, std::size_t segment, const RingCosts& costs);

  // Returns when each rank leaves. All of its sends have left by then. Ranks see what happens within a nanosecond at
  // its end. Exact for operations of less than a quarter of an hour.
  std::vector<TimePoint> leave(std::span<const TimePoint> entered) const;

  // The payload bytes that a rank sends, and that it receives.
  std::int64_t bytes_sent(int rank) const;
  std::int64_t bytes_received(int rank) const { return bytes_sent(rank == 0 ? ranks_ - 1 : rank - 1); }

 private:
  const int ranks_;
  const std::int64_t latency_;
  std::size_t segments_ = 1;               // of each chunk
  std::vector<std::int64_t> chunk_bytes_;  // by chunk
  std::int64_t bytes_ = 0;                 // of all chunks
  // By segment, then by chunk, all chunks twice: those that the ranks send in one slot lie behind each other.
  std::vector<std::vector<double>> on_link_, sums_;  // ticks; zero: a part without elements, which is not sent
};

}  // namespace syncopate::allreduce
