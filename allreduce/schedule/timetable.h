// Timetable: orders the parts that one rank sends and receives. Also here: how a buffer is cut into parts.
//
// Every message of a collective has a slot, the same for its sender and its receiver. A rank goes through the slots in
// order: in each it sends what has this slot, then receives what has the slot `lag` earlier. So `lag` parts are in
// flight while one is reduced. What is sent in a slot must have been received by then: its slot was at least `lag`+1
// earlier.
//
// Such schedules cannot deadlock, even with bounded inboxes. Consider the rank that is least advanced, in slot t. What
// it receives next has been sent, since its sender is at least as far. What it sends next finds room: its peer has
// received all slots up to t-lag-1, so at most the parts of lag+1 slots are in flight.
#pragma once

#include <cstddef>
#include <vector>

#include "allreduce/schedule/schedule.h"

namespace syncopate::allreduce {

// The number of parts that a rank sends ahead if both ends of a link send as many as they receive.
inline constexpr std::size_t kWindow = 8;

class Timetable {
 public:
  explicit Timetable(std::size_t lag) : lag_(lag) {}

  // Adds a part. One whose range is empty is left out, at both ends. Parts of one slot keep the order in which they are
  // added, which must be the same at both ends of a link.
  void send(std::size_t slot, const SendPart& part);
  void receive(std::size_t slot, const ReceivePart& part);

  // Appends the steps to `schedule`.
  void append_to(Schedule& schedule) const;
  Schedule schedule() const;

 private:
  struct Entry {
    std::size_t time = 0;
    ScheduleStep part;  // either a send or a receive
  };

  const std::size_t lag_;
  std::vector<Entry> entries_;
};

// Returns 0 to size-1.
std::vector<int> every_rank(int size);

// Returns the number of segments of at most `segment` elements, rounded up to kAlignment, in `elements`: at least one,
// and one if `segment` is 0.
std::size_t segments_in(std::size_t elements, std::size_t segment);

// Like balanced_ranges, for a range whose begin is aligned.
std::vector<Range> cut(Range range, std::size_t count);
// Cuts each of the ranges into `count` parts.
std::vector<std::vector<Range>> cut_each(const std::vector<Range>& ranges, std::size_t count);

}  // namespace syncopate::allreduce
