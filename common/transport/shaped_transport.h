// ShapedTransport: a transport that behaves as if each process had a network link of its own. Wraps another one, which
// carries the messages, and delivers them no sooner than such a link would.
//
//   sender                                            receiver
//   send: when do its first and last byte leave our   ─► receive: `delay` later its bytes reach our link, which they
//         link? stamped before the header                  share with others'; after the last one it is delivered
//         a revision: what was sent to another peer   ─► what has not come yet comes later than was stamped
//         leaves later, since both share our link
//
// All connections of a process that have something to send share its link fairly, byte by byte (FairEgress), and so do
// those that it receives from (FairIngress). Messages of one connection pass in order, one after another.
//
// All of this is in virtual time: no send sleeps, and no thread is needed. The inner transport's own time counts only
// as far as it exceeds the link's. A revision takes the inner transport's time, and costs the emulated link nothing;
// where that comes too late, a message that passes meanwhile is early by as much.
//
// - A peer whose inbox is full gets no revision before it has taken a message out: at worst each of the 64 that it can
//   hold (shared memory) comes as was stamped.
// - Where a process has several endpoints, what one of them sends delays others' messages. These learn of it in their
//   own calls; one that waits in receive() looks shortly before each of its messages ends.
//
// What passes between members of one process is no matter of its link, and comes as the inner transport brings it.
//
// Stamps are of the steady clock, so all members must be processes of one host, and have links of one shape. A receiver
// holds, unread, what has not arrived yet. Where it lies meanwhile, and how much that can be, is unchanged: over shared
// memory in the sender's memory, 64 messages from each; over other wires as much as the members allow in flight.
// Revisions are read when they come, and not held.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "common/clock.h"
#include "common/transport/forwarding_transport.h"
#include "common/transport/process_link.h"

namespace syncopate {

// wait() ends when the inner one does: over shared memory when the payload has been used, over other wires as soon as
// it has been accepted, as by a kernel's buffers.
class ShapedTransport final : public ForwardingTransport {
 public:
  // `inside` are the peers that are in the same process.
  ShapedTransport(std::unique_ptr<Transport> inner, std::shared_ptr<ProcessLink> link, std::vector<int> inside = {});
  ~ShapedTransport() override;

  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override;
  Result<Message> receive(TimePoint deadline) override;
  TransportCounters counters() const override;

 private:
  struct Held {
    std::uint64_t number = 0;  // in order of receipt from the inner transport
    Message message;
  };
  struct Peer {
    bool is_inside = false;   // the process
    std::deque<Held> coming;  // in order
    TimePoint last_sent;      // when the first byte of the last message to it leaves, as stamped
    TimePoint last_begin;     // the same of the last message from it
  };
  struct Loss {
    std::uint64_t number = 0;  // how many messages were received before it: these are delivered first
    Status status;
  };

  // Tells peers that what was sent to them leaves later than they know.
  void tell(TimePoint now);
  // Takes a message or a revision from the inner transport.
  void take(Message message);
  bool take_revision(const Message& message, TimePoint begin);
  void drop(const Message& message);
  void let_in(TimePoint now);
  // Returns the first failure of a peer whose messages have all been delivered; the end if there is none.
  std::vector<Loss>::iterator due_loss();
  LinkConnection connection(int peer) const { return {endpoint_, peer}; }

  std::shared_ptr<ProcessLink> link_;
  const int endpoint_;
  SteadyClock clock_;
  std::vector<Peer> peers_;                   // by rank
  std::deque<Held> arrived_;                  // not delivered yet
  std::vector<Loss> losses_;                  // not reported yet
  TimePoint tells_again_ = TimePoint::max();  // because an inbox was full
  std::uint64_t taken_over_ = 0;              // messages
  std::int64_t dropped_ = 0;
};

}  // namespace syncopate
