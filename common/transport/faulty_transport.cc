#include "common/transport/faulty_transport.h"

#include <algorithm>
#include <bit>

namespace syncopate {

FaultPlan delays_and_duplicates(const LinkFaults& faults, TimePoint now) {
  return {.duplicate = now < faults.until(LinkFault::kDuplicate) ? 1.0 : 0.0,
          .delay = now < faults.until(LinkFault::kDelay) ? 0.2 : 0.0,
          .delayed_by = std::chrono::milliseconds(20)};
}

FaultPlan reordering(const LinkFaults& faults, TimePoint now) {
  const bool lasts = now < faults.until(LinkFault::kReorder);
  return {.delay = lasts ? 0.2 : 0.0, .delayed_by = std::chrono::milliseconds(5), .overtakes = true};
}

FaultyTransport::~FaultyTransport() {
  for (Held& held : held_) held.until = std::min(held.until, clock_.now());
  release_held();
  for (const Held& held : held_) {
    if (held.pending) held.pending->fetch_sub(1);
  }
}

Status FaultyTransport::send(int peer, std::string_view header, std::span<const std::byte> payload,
                             PendingSends* pending, TimePoint deadline) {
  if (plan_now_) plan_ = plan_now_(clock_.now());
  release_held();
  if (cut_.contains(peer) || random_.uniform() < plan_.drop) return Status();
  const bool twice = random_.uniform() < plan_.duplicate;
  const Status status = send_once(peer, header, payload, pending, deadline);
  if (status.ok() && twice) repeat(peer, header, payload);
  return status;
}

void FaultyTransport::repeat(int peer, std::string_view header, std::span<const std::byte> payload) {
  if (copies_ == kMostCopies) return;
  const std::span<std::byte> copy = copy_of(payload);
  if (copy.size() < payload.size()) return;  // there is no memory for it
  copies_ += !copy.empty();
  held_.push_back({.peer = peer,
                   .header = std::string(header),
                   .payload = copy.first(payload.size()),
                   .copy = copy,
                   .until = hold_until(peer).value_or(clock_.now())});
  release_held();
}

std::span<std::byte> FaultyTransport::copy_of(std::span<const std::byte> payload) {
  if (payload.empty()) return {};
  std::span<std::byte> copy;
  const auto fits = std::ranges::find_if(spare_, [&](auto spare) { return spare.size() >= payload.size(); });
  if (fits != spare_.end()) {
    copy = *fits;
    spare_.erase(fits);
  } else if (const auto memory = wrapped().allocate(std::bit_ceil(payload.size())); memory.ok()) {
    copy = *memory;
  }
  if (!copy.empty()) std::ranges::copy(payload, copy.begin());
  return copy;
}

Status FaultyTransport::send_once(int peer, std::string_view header, std::span<const std::byte> payload,
                                  PendingSends* pending, TimePoint deadline) {
  const std::optional<TimePoint> until = hold_until(peer);
  if (!until) {
    for (Held& held : held_) {
      if (held.peer == peer && ++held.overtaken > FaultPlan::kMostOvertaking) held.until = clock_.now();
    }
    // What is due goes first: its receiver may have no more room for what comes early.
    SYNCOPATE_RETURN_IF_ERROR(release_due(peer, deadline));
    return wrapped().send(peer, header, payload, pending, deadline);
  }
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

Status FaultyTransport::release_due(int peer, TimePoint deadline) {
  const TimePoint now = clock_.now();
  for (Held& held : held_) {
    if (held.peer != peer || held.sent || held.until > now) continue;
    release(held, deadline);
    if (!held.sent) return Status::deadline_exceeded("a peer has no room for what was held back");
  }
  return Status();
}

void FaultyTransport::release(Held& held, TimePoint deadline) {
  const Status status = wrapped().send(held.peer, held.header, held.payload, &held.inner, deadline);
  // Another failure shows as what it looks like from outside: a message that never comes.
  held.sent = status.code() != Code::kDeadlineExceeded;
}

TimePoint FaultyTransport::release_held() {
  const TimePoint now = clock_.now();
  TimePoint next = TimePoint::max();
  std::set<int> full;  // peers whose inbox has no room now: what follows waits behind what came first
  for (Held& held : held_) {
    if (!held.sent && held.until <= now && !full.contains(held.peer)) release(held, now);
    if (held.sent) continue;
    if (held.until <= now) {
      full.insert(held.peer);
    } else {
      next = std::min(next, held.until);
    }
  }
  wrapped().progress();
  std::erase_if(held_, [&](const Held& held) {
    const bool done = held.sent && held.inner.none();
    if (done && held.pending) held.pending->fetch_sub(1);
    if (done && !held.copy.empty()) {
      spare_.push_back(held.copy);
      --copies_;
    }
    return done;
  });
  if (!held_.empty()) next = std::min(next, now + plan_.delayed_by);
  return next;
}

}  // namespace syncopate
