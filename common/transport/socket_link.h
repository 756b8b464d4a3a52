// SocketLink: messages over one connection, both ways. Sends that the connection does not take at once wait in a queue;
// payloads are received straight into buffers of a pool. Nothing here waits. One thread.
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
  // Messages are `peer`'s, and no payload is larger than `largest`. The pool outlives the link.
  SocketLink(int peer, std::unique_ptr<SocketStream> stream, BufferPool& pool,
             std::uint64_t largest = kMaxPayloadBytes);
  ~SocketLink();
  SocketLink(const SocketLink&) = delete;
  SocketLink& operator=(const SocketLink&) = delete;

  int descriptor() const { return stream_->descriptor(); }

  // Sends a message, or queues what is not taken of it. A payload that is queued is counted in `pending` until it has
  // been taken; without a counter, what was not taken is copied.
  void send(std::string_view header, std::span<const std::byte> payload, const PendingSends::Counter* pending);
  // Tells the peer that nothing more will be sent.
  void say_goodbye();
  // Goes on with what is queued. False if nothing moved.
  bool flush();
  std::size_t queued() const { return queue_.size(); }
  // Whether flush() has anything to go on with.
  bool has_more_to_send() const { return !queue_.empty() || holds_bytes(); }
  // Whether bytes that count as sent are not the kernel's yet.
  bool holds_bytes() const { return !deaf_ && stream_->holds_bytes(); }
  // The connection takes no more, and nothing is queued any longer.
  bool deaf() const { return deaf_; }
  // Bytes that the peer's kernel has not confirmed yet.
  std::size_t unconfirmed() const;

  // Receives what is there, up to about a large segment, and puts messages that are complete at the end of `inbox`.
  // False if there was nothing.
  bool receive(std::deque<Message>& inbox);
  // No more will come: the peer is gone, or what came was no frame.
  bool ended() const { return ended_; }
  // The peer has said goodbye.
  bool left_in_order() const { return goodbye_; }
  // The connection was given up because of what came.
  bool corrupt() const { return corrupt_; }

 private:
  struct Outgoing {
    Outgoing(const FrameHead& frame, std::string_view header, std::span<const std::byte> payload);

    std::array<std::byte, sizeof(FrameHead) + kMaxWireHeaderBytes> head;  // the frame's, then the message's header
    std::size_t head_bytes = 0;
    std::span<const std::byte> payload;
    std::size_t taken = 0;          // of both
    PendingSends::Counter pending;  // or null
    BufferPool::Buffer copy;        // of the payload, or none

    std::size_t bytes() const { return head_bytes + payload.size(); }
    // The parts that are still to be sent; how many of them.
    std::size_t parts(iovec* parts) const;
  };

  // What is being received.
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
  std::array<std::byte, kAhead> ahead_;  // received and not looked at yet: [ahead_begin_, ahead_end_)
  std::size_t ahead_begin_ = 0;
  std::size_t ahead_end_ = 0;
  Incoming incoming_;
  bool ended_ = false;
  bool goodbye_ = false;
  bool corrupt_ = false;
};

}  // namespace syncopate
