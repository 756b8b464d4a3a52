#include "common/transport/process_link.h"

#include <algorithm>
#include <utility>

namespace syncopate {

int ProcessLink::enter() {
  const std::lock_guard lock(mutex_);
  const int endpoint = entered_++;
  arrived_[endpoint];
  return endpoint;
}

void ProcessLink::leave(int endpoint) {
  const std::lock_guard lock(mutex_);
  out_.leave(endpoint);
  in_.leave(endpoint);
  arrived_.erase(endpoint);
}

LinkPassage ProcessLink::send(TimePoint now, LinkConnection connection, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  return out_.send(now, connection, length(bytes));
}

std::vector<ProcessLink::Revision> ProcessLink::revisions(TimePoint now, int endpoint, std::size_t most) {
  const std::lock_guard lock(mutex_);
  out_.advance(now);
  std::vector<Revision> revisions;
  for (const LinkConnection& connection : out_.outdated(endpoint)) {
    revisions.push_back({connection.peer, out_.say(connection, most)});
  }
  return revisions;
}

void ProcessLink::untold(LinkConnection connection) {
  const std::lock_guard lock(mutex_);
  out_.unsay(connection);
}

TimePoint ProcessLink::next_look(TimePoint now, int endpoint) {
  const std::lock_guard lock(mutex_);
  if (arrived_.size() == 1) return TimePoint::max();
  const TimePoint end = out_.next_end(endpoint, now + kNotice);
  return end == TimePoint::max() ? end : end - std::max(kNotice, (end - now) / 8);
}

void ProcessLink::receive(LinkConnection connection, LinkPassage leaves, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  in_.add(connection, {leaves.begin + shape_.delay, leaves.end + shape_.delay}, length(bytes));
}

void ProcessLink::revise(LinkConnection connection, std::vector<LinkRemainder> leaves) {
  for (LinkRemainder& remainder : leaves) remainder.time += shape_.delay;
  const std::lock_guard lock(mutex_);
  in_.revise(connection, leaves);
}

std::vector<int> ProcessLink::arrivals(TimePoint now, int endpoint) {
  const std::lock_guard lock(mutex_);
  for (const LinkConnection& connection : in_.take(now)) arrived_[connection.endpoint].push_back(connection.peer);
  return std::exchange(arrived_[endpoint], {});
}

TimePoint ProcessLink::next_arrival(int endpoint) {
  const std::lock_guard lock(mutex_);
  return in_.next(endpoint);
}

Duration ProcessLink::length(std::size_t bytes) const {
  if (shape_.bits_per_second == 0) return Duration(1);
  return std::max(shape_.time_of(bytes), Duration(1));
}

}  // namespace syncopate
