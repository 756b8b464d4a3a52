#include "common/transport/shaped_transport.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <string>
#include <utility>

#include "common/text/log.h"

namespace syncopate {
namespace {

// What goes before a header: when the message's first byte leaves, in the steady clock's nanoseconds.
using Stamp = std::int64_t;

// No sender's link is busy further ahead than this.
constexpr Duration kFurthest = std::chrono::hours(24);

std::size_t bytes_of(const Message& message) { return message.header().size() + message.payload().size(); }

}  // namespace

TimePoint ProcessLink::send(TimePoint now, std::size_t bytes) {
  if (shape_.bits_per_second == 0) return now;
  const std::lock_guard lock(mutex_);
  return out_.pass(now, shape_.time_of(bytes)).begin;
}

TimePoint ProcessLink::receive(TimePoint left, std::size_t bytes) {
  if (shape_.bits_per_second == 0) return due(left);
  const std::lock_guard lock(mutex_);
  return in_.pass(due(left), shape_.time_of(bytes)).end;
}

Status ShapedTransport::send(int peer, std::string_view header, std::span<const std::byte> payload,
                             PendingSends* pending, TimePoint deadline) {
  const Stamp left = link_->send(clock_.now(), header.size() + payload.size()).time_since_epoch().count();
  return wrapped().send(peer, in_envelope(left, header), payload, pending, deadline);
}

Result<Message> ShapedTransport::receive(TimePoint deadline) {
  TimePoint until{};  // first all that is there
  while (true) {
    Result<Message> received = wrapped().receive(until);
    if (received.ok()) {
      hold(std::move(*received));
    } else if (received.status().code() == Code::kPeerLost) {
      losses_.push_back({taken_over_, received.status()});
    } else if (received.status().code() != Code::kDeadlineExceeded) {
      return received;
    } else {
      const TimePoint now = clock_.now();
      let_in(now);
      if (!arriving_.empty() && arriving_.begin()->first <= now) {
        return std::move(arriving_.extract(arriving_.begin()).mapped().message);
      }
      if (const auto loss = due_loss(); loss != losses_.end()) {
        const Status status = loss->status;
        losses_.erase(loss);
        return status;
      }
      if (now >= deadline) return received;
      until = std::min(deadline, next_event());
      continue;
    }
    until = TimePoint{};
  }
}

TransportCounters ShapedTransport::counters() const {
  TransportCounters counters = wrapped().counters();
  counters.dropped += dropped_;
  return counters;
}

void ShapedTransport::hold(Message message) {
  const std::optional<Stamp> stamp = take_envelope<Stamp>(message);
  if (!stamp) return drop(message);
  const TimePoint left{Duration(*stamp)};
  if (left < TimePoint{} || left > clock_.now() + kFurthest) return drop(message);
  coming_.emplace(link_->due(left), Held{taken_over_++, left, std::move(message)});
}

void ShapedTransport::drop(const Message& message) {
  if (dropped_++ == 0) log_warning("endpoint {}: dropped a message from {} without a stamp", rank(), message.from());
}

void ShapedTransport::let_in(TimePoint now) {
  while (!coming_.empty() && coming_.begin()->first <= now) {
    Held held = std::move(coming_.extract(coming_.begin()).mapped());
    const TimePoint arrival = link_->receive(held.left, bytes_of(held.message));
    arriving_.emplace(arrival, std::move(held));
  }
}

std::vector<ShapedTransport::Loss>::iterator ShapedTransport::due_loss() {
  return std::ranges::find_if(losses_, [&](const Loss& loss) {
    const auto is_before = [&](const auto& held) { return held.second.number < loss.number; };
    return std::ranges::none_of(coming_, is_before) && std::ranges::none_of(arriving_, is_before);
  });
}

TimePoint ShapedTransport::next_event() const {
  TimePoint next = TimePoint::max();
  if (!coming_.empty()) next = coming_.begin()->first;
  if (!arriving_.empty()) next = std::min(next, arriving_.begin()->first);
  return next;
}

}  // namespace syncopate
