// MessageOrder: gives messages that come over several connections back the order in which their senders sent them.
// Pure: no wire, no time, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/transport/transport.h"

namespace syncopate {

class MessageOrder {
 public:
  // Of how many messages ahead of the one that is due are kept, a peer. What a peer can have under way to us is far
  // less; more is not ours, and must not fill our memory.
  static constexpr std::uint64_t kMostAhead = 4096;

  explicit MessageOrder(int peers) : peers_(static_cast<std::size_t>(peers)) {}

  // Takes the message that message.from(), one of the peers, has sent as its `number`th, from 0. False, and the message
  // is dropped, if that one has been taken before or is too far ahead.
  bool put(std::uint64_t number, Message message);

  // The next message that is due, if it is there. To be called until there is none before the next put().
  std::optional<Message> take();

 private:
  struct Peer {
    std::uint64_t due = 0;
    std::map<std::uint64_t, Message> early;  // by number
  };

  std::vector<Peer> peers_;
  std::size_t last_ = 0;  // peer that a message was taken from: it alone may have another one due
};

}  // namespace syncopate
