// SocketLink: messages over one connection, both ways. Sends that the connection does not accept at once wait in a
// queue; payloads are received directly into buffers of a pool. Nothing here waits. One thread.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "common/transport/buffer_pool.h"
#include "common/transport/socket_frame.h"
#include "common/transport/socket_stream.h"
#include "common/transport/transport.h"

namespace syncopate {

class SocketLink {
 public:
  // Messages are from `peer`, and no payload may be larger than `largest`. The pool must outlive the link.
  SocketLink(int peer, std::unique_ptr<SocketStream> stream, BufferPool& pool,
             std::uint64_t largest = kMaxPayloadBytes);
  ~SocketLink();
  SocketLink(const SocketLink&) = delete;
  SocketLink& operator=(const SocketLink&) = delete;

  int descriptor() const { return stream_->descriptor(); }

  // Sends a message, or queues the part that is not accepted. A queued payload is counted in `pending` until it has
  // been accepted; without a counter, the rest is copied.
  void send(std::string_view header, std::span<const std::byte> payload, const PendingSends::Counter* pending);
  // Tells the peer that nothing more will be sent.
  void say_goodbye();
  // Goes on sending what is queued. Returns false if nothing moved.
  bool flush();
  std::size_t queued() const { return queue_.size(); }
  // Whether flush() has anything to send.
  bool has_more_to_send() const { return !queue_.empty() || holds_bytes(); }
  // Whether bytes that count as sent have not reached the kernel yet.
  bool holds_bytes() const { return !deaf_ && stream_->holds_bytes(); }
  // The connection accepts no more, and the queue is empty for good.
  bool deaf() const { return deaf_; }
  // The bytes that the peer's kernel has not confirmed yet.
  std::size_t unconfirmed() const;

  // Receives what has arrived, up to about one large segment, and appends complete messages to `inbox`. Returns false
  // if there was nothing.
  bool receive(std::deque<Message>& inbox);
  // No more will arrive: the peer is gone, or what arrived was not a frame.
  bool ended() const { return ended_; }
  // The peer has said goodbye.
  bool left_in_order() const { return goodbye_; }
  // The connection was given up because of invalid data.
  bool corrupt() const { return corrupt_; }

 private:
  struct Outgoing {
    Outgoing(const FrameHead& frame, std::string_view header, std::span<const std::byte> payload);

    std::array<std::byte, sizeof(FrameHead) + kMaxWireHeaderBytes> head;  // the frame's, then the message's header
    std::size_t head_bytes = 0;
    std::span<const std::byte> payload;
    std::size_t taken = 0;          // bytes sent of both
    PendingSends::Counter pending;  // or null
    BufferPool::Buffer copy;        // of the payload, or none

    std::size_t bytes() const { return head_bytes + payload.size(); }
    // Writes the parts that are still to be sent, and returns their number.
    std::size_t parts(iovec* parts) const;
  };

  // The message that is being received.
  struct Incoming {
    std::string header;
    BufferPool::Buffer payload;
    std::size_t filled = 0;

    bool under_way() const { return !payload.bytes().empty(); }
    std::size_t missing() const { return payload.bytes().size() - filled; }
  };

  void send(Outgoing message, const PendingSends::Counter* pending);
  void stop_sending();
  void parse(std::deque<Message>& inbox);
  bool begin_message(std::deque<Message>& inbox);
  void end_message(std::deque<Message>& inbox);

  const int peer_;
  const std::unique_ptr<SocketStream> stream_;
  BufferPool& pool_;
  const std::uint64_t largest_;

  std::deque<Outgoing> queue_;
  bool deaf_ = false;

  static constexpr std::size_t kAhead = 16 * 1024;
  std::array<std::byte, kAhead> ahead_;  // received but not parsed yet: [ahead_begin_, ahead_end_)
  std::size_t ahead_begin_ = 0;
  std::size_t ahead_end_ = 0;
  Incoming incoming_;
  bool ended_ = false;
  bool goodbye_ = false;
  bool corrupt_ = false;
};

}  // namespace syncopate
