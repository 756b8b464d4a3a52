#include "common/transport/numbered_transport.h"

#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace syncopate {

Status NumberedTransport::send(int peer, std::string_view header, std::span<const std::byte> payload,
                               PendingSends* pending, TimePoint deadline) {
  std::uint64_t& number = sent_[static_cast<std::size_t>(peer)];
  const std::string numbered = in_envelope(number, header);
  const Status status = wrapped().send(peer, numbered, payload, pending, deadline);
  number += status.ok();
  return status;
}

Result<Message> NumberedTransport::receive(TimePoint deadline) {
  while (true) {
    if (std::optional<Message> next = order_.take()) return std::move(*next);
    Result<Message> received = wrapped().receive(deadline);
    if (!received.ok()) return received;
    const std::optional<std::uint64_t> number = take_envelope<std::uint64_t>(*received);
    if (!number || !order_.put(*number, std::move(*received))) ++dropped_;
  }
}

TransportCounters NumberedTransport::counters() const {
  TransportCounters counters = wrapped().counters();
  counters.dropped += dropped_;
  return counters;
}

}  // namespace syncopate
