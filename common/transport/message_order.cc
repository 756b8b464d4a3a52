#include "common/transport/message_order.h"

namespace syncopate {

bool MessageOrder::put(std::uint64_t number, Message message) {
  const auto from = static_cast<std::size_t>(message.from());
  Peer& peer = peers_[from];
  if (number < peer.due || number - peer.due > kMostAhead) return false;
  if (number == peer.due) last_ = from;
  return peer.early.emplace(number, std::move(message)).second;
}

std::optional<Message> MessageOrder::take() {
  Peer& peer = peers_[last_];
  if (peer.early.empty() || peer.early.begin()->first != peer.due) return std::nullopt;
  ++peer.due;
  return std::move(peer.early.extract(peer.early.begin()).mapped());
}

}  // namespace syncopate
