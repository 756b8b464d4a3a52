// MessageOrder: restores the order in which senders sent messages that arrive over several connections. Pure: no wire,
// no time, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/transport/transport.h"

namespace syncopate {

class MessageOrder {
 public:
  // The number of messages ahead of the next one that are kept, per peer. A peer of ours can have far fewer in flight;
  // more are not ours, and must not fill our memory.
  static constexpr std::uint64_t kMostAhead = 4096;

  explicit MessageOrder(int peers) : peers_(static_cast<std::size_t>(peers)) {}

  // Takes the message that message.from(), one of the peers, has sent as its `number`th, from 0. Returns false, and
  // drops the message, if that number has been taken before or is too far ahead.
  bool put(std::uint64_t number, Message message);

  // Returns the next message in order, if it has arrived. Call it until there is none before the next put().
  std::optional<Message> take();

 private:
  struct Peer {
    std::uint64_t due = 0;
    std::map<std::uint64_t, Message> early;  // by number
  };

  std::vector<Peer> peers_;
  std::size_t last_ = 0;  // the peer of the last message taken: only it may have another one due
};

inline bool MessageOrder::put(std::uint64_t number, Message message) {
  const auto from = static_cast<std::size_t>(message.from());
  Peer& peer = peers_[from];
  if (number < peer.due || number - peer.due > kMostAhead) return false;
  if (number == peer.due) last_ = from;
  return peer.early.emplace(number, std::move(message)).second;
}

inline std::optional<Message> MessageOrder::take() {
  Peer& peer = peers_[last_];
  if (peer.early.empty() || peer.early.begin()->first != peer.due) return std::nullopt;
  ++peer.due;
  return std::move(peer.early.extract(peer.early.begin()).mapped());
}

}  // namespace syncopate
