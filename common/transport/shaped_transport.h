// ShapedTransport: a transport that behaves as if each process had a network link of its own. Wraps another one, which
// carries the messages, and hands them over no sooner than such a link would have brought them.
//
//   sender                                            receiver
//   send: when is its first byte through our link? ─► receive: from then on, and `delay` later, its bytes come in, if
//         stamped before the header                            those of no other message do; once the last one is
//                                                              in, it is handed over
//
// All in virtual time: nobody sleeps to send, and no thread is needed. What it takes the inner transport to bring a
// message counts only as far as it lasts longer than the link would. Whole messages pass one after another, in the
// order of their first bytes: a real link would mix the packets of several senders.
//
// Stamps are of the steady clock, so that all members are processes of one host. A receiver keeps back, unread, what
// has not arrived yet; where it lies then, and how much that can be, is as before: over shared memory in the sender's
// memory, 64 messages from each; over other wires what the members let be under way.
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

// The link of a process, shared by all of its endpoints. Any thread.
class ProcessLink {
 public:
  explicit ProcessLink(const LinkShape& shape) : shape_(shape) {}

  // Takes in a message of so many bytes at `now`. Returns when its first byte leaves.
  TimePoint send(TimePoint now, std::size_t bytes);
  // When the first byte of a message that left its sender at `left` is here at the earliest.
  TimePoint due(TimePoint left) const { return left + shape_.delay; }
  // When its last byte has come in.
  TimePoint receive(TimePoint left, std::size_t bytes);

 private:
  const LinkShape shape_;
  std::mutex mutex_;
  LinkClock out_, in_;  // guarded by mutex_
};

// wait() ends when the inner one does: over shared memory when the payload has been used, over the others as soon as it
// has been taken over, as a kernel's buffers would.
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
    std::uint64_t number = 0;  // of those taken over from the inner transport
    TimePoint left;            // its sender, with its first byte
    Message message;
  };
  struct Loss {
    std::uint64_t number = 0;  // how many were taken over before: they are handed over first
    Status status;
  };

  // Takes `message` over from the inner transport.
  void hold(Message message);
  void drop(const Message& message);
  // Lets the bytes of all messages come in whose first byte is here.
  void let_in(TimePoint now);
  // The first failure of a peer whose messages have all been handed over; nothing if there is none.
  std::vector<Loss>::iterator due_loss();
  // When something is to be done next.
  TimePoint next_event() const;

  std::shared_ptr<ProcessLink> link_;
  SteadyClock clock_;
  std::multimap<TimePoint, Held> coming_;    // by when the first byte is here
  std::multimap<TimePoint, Held> arriving_;  // by when the last byte is
  std::vector<Loss> losses_;                 // not told yet
  std::uint64_t taken_over_ = 0;             // messages
  std::int64_t dropped_ = 0;
};

}  // namespace syncopate
