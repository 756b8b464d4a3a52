#include "common/transport/shaped_transport.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "common/text/log.h"

namespace syncopate {
namespace {

// What goes before a header, in the steady clock's nanoseconds.
struct Stamp {
  std::int64_t begin = 0;  // when the message's first byte leaves
  std::int64_t end = 0;    // when its last byte leaves, as far as is known; or kRevision
};

// Behind such a stamp the header is that of no message, but remainders of what was sent to this peer. `begin` is that
// of the last message that they count.
constexpr std::int64_t kRevision = -1;

struct WireRemainder {
  std::int64_t time = 0;
  std::int64_t left = 0;  // nanoseconds of the link's time
};
constexpr std::size_t kMostRemainders = kMaxHeaderBytes / sizeof(WireRemainder);

// No sender's link is busy further ahead than this.
constexpr Duration kFurthest = std::chrono::hours(24);
// How soon a revision that found no place in an inbox is sent again.
constexpr Duration kAgain = std::chrono::milliseconds(1);

std::size_t bytes_of(const Message& message) { return message.header().size() + message.payload().size(); }

std::string to_text(std::span<const LinkRemainder> remainders) {
  std::string text;
  for (const LinkRemainder& remainder : remainders) {
    const WireRemainder wire{remainder.time.time_since_epoch().count(), remainder.left.count()};
    text.append(reinterpret_cast<const char*>(&wire), sizeof(wire));
  }
  return text;
}

// Returns the remainders: two or more, in order of time, down to nothing left; none if the text holds anything else.
std::vector<LinkRemainder> parse_remainders(std::string_view text, TimePoint latest) {
  std::vector<LinkRemainder> remainders(text.size() / sizeof(WireRemainder));
  if (text.size() % sizeof(WireRemainder) != 0 || remainders.size() < 2) return {};
  for (LinkRemainder& remainder : remainders) {
    WireRemainder wire;
    std::memcpy(&wire, text.data(), sizeof(wire));
    text.remove_prefix(sizeof(wire));
    remainder = {TimePoint{Duration(wire.time)}, Duration(wire.left)};
  }
  const auto is_wrong = [](const LinkRemainder& one, const LinkRemainder& next) {
    return one.time > next.time || one.left < next.left;
  };
  const bool is_right = remainders.front().time >= TimePoint{} && remainders.back().time <= latest &&
                        remainders.front().left <= kFurthest && remainders.back().left == Duration::zero() &&
                        std::ranges::adjacent_find(remainders, is_wrong) == remainders.end();
  return is_right ? remainders : std::vector<LinkRemainder>();
}

}  // namespace

ShapedTransport::ShapedTransport(std::unique_ptr<Transport> inner, std::shared_ptr<ProcessLink> link,
                                 std::vector<int> inside)
    : ForwardingTransport(std::move(inner)),
      link_(std::move(link)),
      endpoint_(link_->enter()),
      peers_(static_cast<std::size_t>(size())) {
  for (const int peer : inside) peers_[static_cast<std::size_t>(peer)].is_inside = true;
}

ShapedTransport::~ShapedTransport() { link_->leave(endpoint_); }

Status ShapedTransport::send(int peer, std::string_view header, std::span<const std::byte> payload,
                             PendingSends* pending, TimePoint deadline) {
  if (peers_[static_cast<std::size_t>(peer)].is_inside) {
    return wrapped().send(peer, header, payload, pending, deadline);
  }
  const TimePoint now = clock_.now();
  const LinkPassage leaves = link_->send(now, connection(peer), header.size() + payload.size());
  peers_[static_cast<std::size_t>(peer)].last_sent = leaves.begin;
  const Stamp stamp{leaves.begin.time_since_epoch().count(), leaves.end.time_since_epoch().count()};
  SYNCOPATE_RETURN_IF_ERROR(wrapped().send(peer, in_envelope(stamp, header), payload, pending, deadline));
  tell(now);
  return Status();
}

void ShapedTransport::tell(TimePoint now) {
  tells_again_ = TimePoint::max();
  for (const ProcessLink::Revision& revision : link_->revisions(now, endpoint_, kMostRemainders)) {
    const TimePoint last = peers_[static_cast<std::size_t>(revision.peer)].last_sent;
    const Stamp stamp{last.time_since_epoch().count(), kRevision};
    const Status status =
        wrapped().send(revision.peer, in_envelope(stamp, to_text(revision.remainders)), {}, nullptr, TimePoint{});
    if (status.code() != Code::kDeadlineExceeded) continue;  // who is lost needs to know nothing
    link_->untold(connection(revision.peer));
    tells_again_ = now + kAgain;
  }
}

Result<Message> ShapedTransport::receive(TimePoint deadline) {
  TimePoint until{};  // first all that is there
  while (true) {
    Result<Message> received = wrapped().receive(until);
    if (received.ok()) {
      take(std::move(*received));
    } else if (received.status().code() == Code::kPeerLost) {
      losses_.push_back({taken_over_, received.status()});
    } else if (received.status().code() != Code::kDeadlineExceeded) {
      return received;
    } else {
      const TimePoint now = clock_.now();
      tell(now);
      let_in(now);
      if (!arrived_.empty()) {
        Message message = std::move(arrived_.front().message);
        arrived_.pop_front();
        return message;
      }
      if (const auto loss = due_loss(); loss != losses_.end()) {
        const Status status = loss->status;
        losses_.erase(loss);
        return status;
      }
      if (now >= deadline) return received;
      until = std::min({deadline, tells_again_, link_->next_arrival(endpoint_), link_->next_look(now, endpoint_)});
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

void ShapedTransport::take(Message message) {
  if (peers_[static_cast<std::size_t>(message.from())].is_inside) {
    arrived_.push_back({taken_over_++, std::move(message)});
    return;
  }
  const std::optional<Stamp> stamp = take_envelope<Stamp>(message);
  if (!stamp) return drop(message);
  const TimePoint begin{Duration(stamp->begin)}, end{Duration(stamp->end)}, latest = clock_.now() + kFurthest;
  if (stamp->end == kRevision) {
    if (!take_revision(message, begin)) drop(message);
    return;
  }
  if (begin < TimePoint{} || end < begin || end > latest) return drop(message);
  Peer& peer = peers_[static_cast<std::size_t>(message.from())];
  link_->receive(connection(message.from()), {begin, end}, bytes_of(message));
  peer.last_begin = std::max(peer.last_begin, begin);  // it may be a repetition
  peer.coming.push_back({taken_over_++, std::move(message)});
}

bool ShapedTransport::take_revision(const Message& message, TimePoint begin) {
  std::vector<LinkRemainder> leaves = parse_remainders(message.header(), clock_.now() + kFurthest);
  if (leaves.empty()) return false;
  // One that counts other messages than have come is of no use: a newer one will.
  const Peer& peer = peers_[static_cast<std::size_t>(message.from())];
  if (begin == peer.last_begin) link_->revise(connection(message.from()), std::move(leaves));
  return true;
}

void ShapedTransport::drop(const Message& message) {
  if (dropped_++ == 0) log_warning("endpoint {}: dropped a message from {} without a stamp", rank(), message.from());
}

void ShapedTransport::let_in(TimePoint now) {
  for (const int from : link_->arrivals(now, endpoint_)) {
    std::deque<Held>& coming = peers_[static_cast<std::size_t>(from)].coming;
    arrived_.push_back(std::move(coming.front()));
    coming.pop_front();
  }
}

std::vector<ShapedTransport::Loss>::iterator ShapedTransport::due_loss() {
  return std::ranges::find_if(losses_, [&](const Loss& loss) {
    return std::ranges::none_of(
        peers_, [&](const Peer& peer) { return !peer.coming.empty() && peer.coming.front().number < loss.number; });
  });
}

}  // namespace syncopate
