// Transport: messages between the members of a group. A message is a small header (made by the sending part of the
// program; opaque here) and a raw payload that is never copied for framing.
//
// One endpoint is used by one thread at a time; only interrupt() may be called from any thread. Messages from one peer
// arrive in the order in which it sent them; there is no order between peers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate {

inline constexpr std::size_t kMaxHeaderBytes = 192;
// What wrapping transports may put before a header, all together: wires carry headers that are longer by this much.
inline constexpr std::size_t kMaxEnvelopeBytes = 24;
inline constexpr std::size_t kMaxWireHeaderBytes = kMaxHeaderBytes + kMaxEnvelopeBytes;
// The largest payload over a wire that carries bytes. A message that announces more is dropped before memory is
// allocated for it.
inline constexpr std::uint64_t kMaxPayloadBytes = std::uint64_t{1} << 30;
// The limit of a transport that passes payloads on where they lie.
inline constexpr std::uint64_t kAnySize = std::numeric_limits<std::uint64_t>::max();
// Fails with invalid argument if no wire carries the message: its header, envelopes included, is longer than
// kMaxWireHeaderBytes, or its payload is larger than `largest` bytes. Every transport that builds a frame asks first.
Status check_message(std::string_view header, std::span<const std::byte> payload, std::uint64_t largest);

// Counts sends whose payload is still being read. A payload may be changed once its counter is back at zero. It is
// updated inside the calls of the transport that it was passed to, and possibly by that transport's threads; the count
// is shared with them, so a PendingSends may be destroyed before its sends are done.
class PendingSends {
 public:
  using Counter = std::shared_ptr<std::atomic<int>>;

  bool none() const { return counter_->load(std::memory_order_acquire) == 0; }
  // For transports: incremented by a send, decremented when its payload has been released.
  const Counter& counter() const { return counter_; }

 private:
  Counter counter_ = std::make_shared<std::atomic<int>>(0);
};

// A received message: a view that keeps its bytes alive. Destroy it, on the endpoint's thread and before the endpoint,
// as soon as the payload has been used: only then may the sender reuse the memory.
class Message {
 public:
  // Releases the memory that the payload lies in.
  class Lease {
   public:
    virtual ~Lease() = default;
  };

  Message() = default;
  Message(int from, std::string header, std::span<const std::byte> payload, std::unique_ptr<Lease> lease)
      : from_(from), header_(std::move(header)), payload_(payload), lease_(std::move(lease)) {}

  int from() const { return from_; }
  // Returns the same message with another number for its sender, as the receiver counts senders.
  Message renumbered(int from) && {
    from_ = from;
    return std::move(*this);
  }
  // Returns the same message, without the first bytes of its header.
  Message without(std::size_t header_bytes) && {
    header_.erase(0, header_bytes);
    return std::move(*this);
  }
  const std::string& header() const { return header_; }
  std::span<const std::byte> payload() const { return payload_; }
  // Returns the payload as floats. Its size must be a multiple of four (callers check it against the layout first).
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
  std::int64_t dropped = 0;   // invalid messages: wrong run, unknown sender, impossible sizes
  std::int64_t rejected = 0;  // rejected connections: not of this run, or of another user
};

// What an endpoint has counted since it stood at `before`.
inline TransportCounters operator-(const TransportCounters& now, const TransportCounters& before) {
  return {.payload_bytes_out = now.payload_bytes_out - before.payload_bytes_out,
          .payload_bytes_in = now.payload_bytes_in - before.payload_bytes_in,
          .dropped = now.dropped - before.dropped,
          .rejected = now.rejected - before.rejected};
}

// The number of all attempts of intruders.
inline std::int64_t rejections(const TransportCounters& counters) { return counters.dropped + counters.rejected; }

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // "shm", "tcp", "sockets", "ipc", "inproc"
  virtual const char* name() const = 0;

  // Returns zeroed memory, aligned to a cache line, that payloads can be sent from. It belongs to the transport and
  // lives as long as it does. Fails with resource exhausted.
  virtual Result<std::span<std::byte>> allocate(std::size_t bytes) = 0;

  // Sends a message to `peer`. The payload (possibly empty) must lie in memory from allocate(), or, over any wire but
  // shared memory, in other memory that outlives the endpoint. It must not change until `pending` has counted it done;
  // the header is copied. Blocks only while the peer's inbox is full, until `deadline`: deadline exceeded, peer lost,
  // cancelled. Over a wire without threads, what the network does not accept at once is sent inside later calls of this
  // endpoint, so a sender must call again, at least wait().
  virtual Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
                      TimePoint deadline) = 0;

  // Returns the next message from any peer. Fails with deadline exceeded, with cancelled after interrupt(), and with
  // peer lost (once per peer) if the wire can tell that a peer is gone and all that it sent has been received.
  virtual Result<Message> receive(TimePoint deadline) = 0;
  // The same for who only looks: that nothing has come by then is no failure, so that no transport waits for longer.
  virtual Result<Message> poll(TimePoint until) { return receive(until); }

  // Returns when `pending` counts no send: at once, or when peers have released the payloads. A lost peer holds
  // nothing.
  virtual Status wait(const PendingSends& pending, TimePoint deadline) = 0;

  // Updates counters of pending sends without waiting.
  virtual void progress() = 0;

  // Makes the current call and all later ones that would wait return cancelled. Any thread.
  virtual void interrupt() = 0;

  virtual TransportCounters counters() const = 0;
};

}  // namespace syncopate
