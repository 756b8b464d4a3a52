#include "common/transport/faulty_transport.h"

#include <algorithm>

namespace syncopate {

Status FaultyTransport::send(int peer, std::string_view header, std::span<const std::byte> payload,
                             PendingSends* pending, TimePoint deadline) {
  release_held();
  if (cut_.contains(peer) || random_.uniform() < plan_.drop) return Status();
  if (random_.uniform() < plan_.duplicate) {
    SYNCOPATE_RETURN_IF_ERROR(send_once(peer, header, payload, pending, deadline));
  }
  return send_once(peer, header, payload, pending, deadline);
}

Status FaultyTransport::send_once(int peer, std::string_view header, std::span<const std::byte> payload,
                                  PendingSends* pending, TimePoint deadline) {
  const std::optional<TimePoint> until = hold_until(peer);
  if (!until) return wrapped().send(peer, header, payload, pending, deadline);
  Held held{.peer = peer, .header = std::string(header), .payload = payload, .until = *until};
  if (pending != nullptr) {
    held.pending = pending->counter();
    held.pending->fetch_add(1);
  }
  held_.push_back(std::move(held));
  return Status();
}

std::optional<TimePoint> FaultyTransport::hold_until(int peer) {
  if (random_.uniform() < plan_.delay) return clock_.now() + plan_.delayed_by;
  if (plan_.overtakes) return std::nullopt;
  const auto is_before = [&](const Held& held) { return held.peer == peer && !held.sent; };
  const auto last = std::find_if(held_.rbegin(), held_.rend(), is_before);
  return last == held_.rend() ? std::nullopt : std::optional(last->until);
}

Result<Message> FaultyTransport::receive(TimePoint deadline) {
  while (true) {
    const TimePoint due = release_held();
    Result<Message> received = wrapped().receive(std::min(deadline, due));
    if (received.ok() && cut_.contains(received->from())) continue;
    const bool early = !received.ok() && received.status().code() == Code::kDeadlineExceeded && due < deadline;
    if (!early) return received;
  }
}

Status FaultyTransport::wait(const PendingSends& pending, TimePoint deadline) {
  while (true) {
    const TimePoint due = release_held();
    const Status status = wrapped().wait(pending, std::min(deadline, due));
    if (status.ok() || status.code() != Code::kDeadlineExceeded || due >= deadline) return status;
  }
}

void FaultyTransport::progress() {
  release_held();
  wrapped().progress();
}

TimePoint FaultyTransport::release_held() {
  const TimePoint now = clock_.now();
  TimePoint next = TimePoint::max();
  for (Held& held : held_) {
    if (!held.sent && held.until <= now) {
      // A failure shows as what it looks like from outside: a message that never comes.
      (void)wrapped().send(held.peer, held.header, held.payload, &held.inner, now);
      held.sent = true;
    }
    if (!held.sent) next = std::min(next, held.until);
  }
  wrapped().progress();
  std::erase_if(held_, [](const Held& held) {
    const bool done = held.sent && held.inner.none();
    if (done && held.pending) held.pending->fetch_sub(1);
    return done;
  });
  if (!held_.empty()) next = std::min(next, now + plan_.delayed_by);
  return next;
}

}  // namespace syncopate
