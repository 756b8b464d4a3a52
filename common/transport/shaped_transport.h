// ShapedTransport: a transport that behaves as if each process had a network link of its own. Wraps another one, which
// carries the messages, and delivers them no sooner than such a link would.
//
//   sender                                            receiver
//   send: when does its first byte pass our link?   ─► receive: from then on, and `delay` later, its bytes arrive,
//         stamped before the header                            while those of no other message do; after the last one
//                                                              it is delivered
//
// All of this is in virtual time: no send sleeps, and no thread is needed. The inner transport's own time counts only
// as far as it exceeds the link's. Whole messages pass one after another, in the order of their first bytes, whereas a
// real link would mix the packets of several senders.
//
// Stamps are of the steady clock, so all members must be processes of one host. A receiver holds, unread, what has not
// arrived yet. Where it lies meanwhile, and how much that can be, is unchanged: over shared memory in the sender's
// memory, 64 messages from each; over other wires as much as the members allow in flight.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "common/clock.h"
#include "common/transport/forwarding_transport.h"
#include "common/transport/link_clock.h"
#include "common/transport/link_shape.h"

namespace syncopate {

// The link of a process, shared by all of its endpoints. At rate 0 it delays messages, and carries as many as come. Any
// thread.
class ProcessLink {
 public:
  explicit ProcessLink(const LinkShape& shape) : shape_(shape) {}

  // Accepts a message of this size at `now`. Returns when its first byte leaves.
  TimePoint send(TimePoint now, std::size_t bytes);
  // Returns the earliest arrival of the first byte of a message that left its sender at `left`.
  TimePoint due(TimePoint left) const { return left + shape_.delay; }
  // Returns when its last byte has arrived.
  TimePoint receive(TimePoint left, std::size_t bytes);

 private:
  const LinkShape shape_;
  std::mutex mutex_;
  LinkClock out_, in_;  // guarded by mutex_
};

// wait() ends when the inner one does: over shared memory when the payload has been used, over other wires as soon as
// it has been accepted, as by a kernel's buffers.
class ShapedTransport final : public ForwardingTransport {
 public:
  ShapedTransport(std::unique_ptr<Transport> inner, std::shared_ptr<ProcessLink> link)
      : ForwardingTransport(std::move(inner)), link_(std::move(link)) {}

  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override;
  Result<Message> receive(TimePoint deadline) override;
  TransportCounters counters() const override;

 private:
  struct Held {
    std::uint64_t number = 0;  // in order of receipt from the inner transport
    TimePoint left;            // when its first byte left its sender
    Message message;
  };
  struct Loss {
    std::uint64_t number = 0;  // how many messages were received before it: these are delivered first
    Status status;
  };

  // Takes a message from the inner transport.
  void hold(Message message);
  void drop(const Message& message);
  // Lets the bytes of all messages arrive whose first byte is here.
  void let_in(TimePoint now);
  // Returns the first failure of a peer whose messages have all been delivered; the end if there is none.
  std::vector<Loss>::iterator due_loss();
  // Returns when the next action is due.
  TimePoint next_event() const;

  std::shared_ptr<ProcessLink> link_;
  SteadyClock clock_;
  std::multimap<TimePoint, Held> coming_;    // by arrival of the first byte
  std::multimap<TimePoint, Held> arriving_;  // by arrival of the last byte
  std::vector<Loss> losses_;                 // not reported yet
  std::uint64_t taken_over_ = 0;             // messages
  std::int64_t dropped_ = 0;
};

}  // namespace syncopate
