#include "common/transport/cuttable_transport.h"

#include <algorithm>
#include <utility>

namespace syncopate {

Status CuttableTransport::send(int peer, std::string_view header, std::span<const std::byte> payload,
                               PendingSends* pending, TimePoint deadline) {
  if (!is_cut()) {
    SYNCOPATE_RETURN_IF_ERROR(send_held(deadline));
    if (held_.empty()) return wrapped().send(peer, header, payload, pending, deadline);
  }
  Held held{
      .peer = peer, .header = std::string(header), .payload = payload, .pending = {}, .counts = pending != nullptr};
  if (pending != nullptr) {
    held.pending = *pending;
    held.pending.counter()->fetch_add(1);
  }
  held_.push_back(std::move(held));
  return Status();
}

Result<Message> CuttableTransport::receive(TimePoint deadline) {
  while (true) {
    SYNCOPATE_RETURN_IF_ERROR(sit_out(deadline));
    SYNCOPATE_RETURN_IF_ERROR(send_held(deadline));
    if (!come_.empty()) {
      Result<Message> next = std::move(come_.front());
      come_.pop_front();
      return next;
    }
    Result<Message> received = wrapped().receive(deadline);
    const bool came = received.ok() || received.status().code() == Code::kPeerLost;
    if (!came || !is_cut()) return received;
    come_.push_back(std::move(received));  // the link was cut while it was waited for
  }
}

Status CuttableTransport::sit_out(TimePoint deadline) {
  while (is_cut()) {
    Result<Message> received = wrapped().receive(std::min(deadline, cut_until()));
    if (received.ok() || received.status().code() == Code::kPeerLost) {
      come_.push_back(std::move(received));
    } else if (received.status().code() != Code::kDeadlineExceeded || clock_.now() >= deadline) {
      return received.status();
    }
  }
  return Status();
}

Status CuttableTransport::send_held(TimePoint deadline) {
  while (!held_.empty() && !is_cut()) {
    Held& held = held_.front();
    PendingSends* const pending = held.counts ? &held.pending : nullptr;
    const Status status = wrapped().send(held.peer, held.header, held.payload, pending, deadline);
    if (status.code() == Code::kDeadlineExceeded) return status;  // it is still held
    if (held.counts) held.pending.counter()->fetch_sub(1);
    held_.pop_front();
    // Another peer that is lost does not concern who sends to this one; a wait for it will tell.
    if (!status.ok() && status.code() != Code::kPeerLost) return status;
  }
  return Status();
}

Status CuttableTransport::wait(const PendingSends& pending, TimePoint deadline) {
  while (true) {
    SYNCOPATE_RETURN_IF_ERROR(send_held(deadline));
    if (!is_cut() || pending.none()) return wrapped().wait(pending, deadline);
    const Status status = wrapped().wait(pending, std::min(deadline, cut_until()));
    if (status.ok() || status.code() != Code::kDeadlineExceeded || clock_.now() >= deadline) return status;
  }
}

void CuttableTransport::progress() {
  // What the peer's inbox has no room for stays here for the next call.
  (void)send_held(clock_.now());
  wrapped().progress();
}

}  // namespace syncopate
