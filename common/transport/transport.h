// Transport: messages between the members of a group. A message is a small header (made by the room that sends it;
// opaque here) and a raw payload that is never copied to be framed.
//
// One endpoint is used by one thread at a time; interrupt() alone may be called from any thread. Messages from one peer
// arrive in the order in which it sent them; there is no order between peers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate {

inline constexpr std::size_t kMaxHeaderBytes = 192;
// What transports that wrap others may put before a header, together: wires carry headers that are so much longer.
inline constexpr std::size_t kMaxEnvelopeBytes = 16;
inline constexpr std::size_t kMaxWireHeaderBytes = kMaxHeaderBytes + kMaxEnvelopeBytes;
// No payload is larger over a wire that carries bytes. What is announced as larger is dropped before memory is taken
// for it.
inline constexpr std::uint64_t kMaxPayloadBytes = std::uint64_t{1} << 30;
// Invalid argument if it is larger than `largest`.
Status check_payload(std::span<const std::byte> payload, std::uint64_t largest = kMaxPayloadBytes);

// Counts sends whose payload is still being read. A payload may be changed once its counter is back at zero.
// Updated inside the calls of the transport that it was given to, and possibly by that transport's threads; the count
// is shared with them, so that a PendingSends may die before its sends are done.
class PendingSends {
 public:
  using Counter = std::shared_ptr<std::atomic<int>>;

  bool none() const { return counter_->load(std::memory_order_acquire) == 0; }
  // For transports: incremented by a send, decremented when its payload has been let go.
  const Counter& counter() const { return counter_; }

 private:
  Counter counter_ = std::make_shared<std::atomic<int>>(0);
};

// A received message: a view that keeps its bytes alive. Destroy it, on the endpoint's thread and before the endpoint,
// as soon as the payload has been used: only then may the sender reuse the memory.
class Message {
 public:
  // Gives back what the payload lies in.
  class Lease {
   public:
    virtual ~Lease() = default;
  };

  Message() = default;
  Message(int from, std::string header, std::span<const std::byte> payload, std::unique_ptr<Lease> lease)
      : from_(from), header_(std::move(header)), payload_(payload), lease_(std::move(lease)) {}

  int from() const { return from_; }
  // The same message, whose sender has another number with the receiver.
  Message renumbered(int from) && {
    from_ = from;
    return std::move(*this);
  }
  // The same message, without the first bytes of its header.
  Message without(std::size_t header_bytes) && {
    header_.erase(0, header_bytes);
    return std::move(*this);
  }
  const std::string& header() const { return header_; }
  std::span<const std::byte> payload() const { return payload_; }
  // The payload as floats. Its size must be a multiple of four (drivers check it against the layout first).
  std::span<const float> floats() const {
    return {reinterpret_cast<const float*>(payload_.data()), payload_.size() / sizeof(float)};
  }

 private:
  int from_ = -1;
  std::string header_;
  std::span<const std::byte> payload_;
  std::unique_ptr<Lease> lease_;
};

struct TransportCounters {
  std::int64_t payload_bytes_out = 0;
  std::int64_t payload_bytes_in = 0;
  std::int64_t dropped = 0;      // messages that did not check out: wrong run, unknown sender, impossible sizes
  std::int64_t turned_away = 0;  // connections that came to no message: not of this run, of another user
};

// All that strangers have tried.
inline std::int64_t not_let_through(const TransportCounters& counters) {
  return counters.dropped + counters.turned_away;
}

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // "shm", "tcp", "sockets", "ipc", "inproc"
  virtual const char* name() const = 0;

  // Zeroed memory, aligned to a cache line, that payloads can be sent from; it belongs to the transport and lives as
  // long as it does. Fails with resource exhausted.
  virtual Result<std::span<std::byte>> allocate(std::size_t bytes) = 0;

  // Hands a message to `peer`. The payload (possibly empty) must lie in memory from allocate() and stays untouched
  // until `pending` has counted it done; the header is copied. Blocks only while the peer's inbox is full, and then
  // until `deadline`: deadline exceeded, peer lost, cancelled. Over a wire without threads, what the network does not
  // take at once goes on inside later calls of this endpoint: a sender comes back, to wait() if for nothing else.
  virtual Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
                      TimePoint deadline) = 0;

  // The next message from anybody. Fails with deadline exceeded, with cancelled after interrupt(), and with peer lost
  // (once a peer) where the wire can tell that a peer is gone and all that it sent has been received.
  virtual Result<Message> receive(TimePoint deadline) = 0;

  // Returns when `pending` counts no send: at once, or as peers let go of the payloads. A lost peer holds nothing.
  virtual Status wait(const PendingSends& pending, TimePoint deadline) = 0;

  // Brings counters of pending sends up to date without waiting.
  virtual void progress() = 0;

  // Makes the call under way and all later ones that would wait return cancelled. Any thread.
  virtual void interrupt() = 0;

  virtual TransportCounters counters() const = 0;
};

}  // namespace syncopate
