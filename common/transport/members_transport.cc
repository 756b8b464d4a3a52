#include "common/transport/members_transport.h"

#include <fmt/format.h>

#include <cassert>
#include <utility>

namespace syncopate {

MembersTransport::MembersTransport(std::unique_ptr<Transport> inner, std::vector<int> there, int size)
    : ForwardingTransport(std::move(inner)), there_(std::move(there)), inner_rank_(static_cast<std::size_t>(size), -1) {
  assert(wrapped().size() == static_cast<int>(there_.size()));
  for (std::size_t i = 0; i < there_.size(); ++i)
    inner_rank_[static_cast<std::size_t>(there_[i])] = static_cast<int>(i);
}

Status MembersTransport::send(int peer, std::string_view header, std::span<const std::byte> payload,
                              PendingSends* pending, TimePoint deadline) {
  const int inner = inner_rank_[static_cast<std::size_t>(peer)];
  if (inner < 0) return Status::peer_lost(fmt::format("member {} is not there", peer));
  return wrapped().send(inner, header, payload, pending, deadline);
}

Result<Message> MembersTransport::renumbered(Result<Message> message) const {
  if (!message.ok()) return message;
  const int from = there_[static_cast<std::size_t>(message->from())];
  return std::move(*message).renumbered(from);
}

}  // namespace syncopate
