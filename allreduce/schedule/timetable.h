// Timetable: puts the parts that one rank sends and receives in order, and how a buffer is cut into parts.
//
// Every message of a collective has a slot, the same for its sender and its receiver. A rank goes through the slots in
// order: in each it sends what has this slot, then receives what had the slot `lag` before. So `lag` parts are on their
// way while one is reduced. What is sent in a slot must have been received by then: it had a slot at least `lag`+1
// before.
//
// Such schedules cannot block one another, even with inboxes that are bounded. Take the rank that is least advanced, in
// slot t. What it is to receive has been sent, since its sender has come at least as far. What it is to send finds
// room: its peer has received what had slots up to t-lag-1, so that at most the parts of lag+1 slots are on their way.
#pragma once

#include <cstddef>
#include <vector>

#include "allreduce/schedule/schedule.h"

namespace syncopate::allreduce {

// Parts that a rank sends ahead where both ends of a link send as many as they receive.
inline constexpr std::size_t kWindow = 8;

class Timetable {
 public:
  explicit Timetable(std::size_t lag) : lag_(lag) {}

  // A part whose range is empty is left out, at both ends. Parts of one slot keep the order in which they are added
  // here, which must be the same at both ends of a link.
  void send(std::size_t slot, const SendPart& part);
  void receive(std::size_t slot, const ReceivePart& part);

  // Puts the steps behind those of `schedule`.
  void append_to(Schedule& schedule) const;

 private:
  struct Entry {
    std::size_t time = 0;
    ScheduleStep part;  // either a send or a receive
  };

  const std::size_t lag_;
  std::vector<Entry> entries_;
};

// How many segments of at most `segment` elements, rounded up to kAlignment, there are in `elements`: at least one; one
// where `segment` is 0.
std::size_t segments_in(std::size_t elements, std::size_t segment);

// As balanced_ranges, of a range whose begin is aligned.
std::vector<Range> cut(Range range, std::size_t count);
// Each of the ranges in `count` parts.
std::vector<std::vector<Range>> cut_each(const std::vector<Range>& ranges, std::size_t count);

}  // namespace syncopate::allreduce
