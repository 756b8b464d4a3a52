// Messages over ZeroMQ: every endpoint binds one PULL socket, from which it receives whatever the others send, and
// connects PUSH sockets, one for each connection, to each peer that it sends to. A payload leaves from the caller's
// memory and is received into memory of ZeroMQ's own, where the receiver uses it; ZeroMQ's I/O thread moves the bytes.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>
#include <zmq.hpp>

#include "common/hash.h"
#include "common/os/aligned_buffer.h"
#include "common/os/socket_address.h"
#include "common/text/log.h"
#include "common/transport/borrowed_payloads.h"
#include "common/transport/make_transport.h"
#include "common/transport/member_keys.h"
#include "common/transport/message_order.h"
#include "common/transport/secure_sockets.h"
#include "common/transport/waits.h"
#include "common/transport/zmq_frame.h"

namespace syncopate {
namespace {

// Connections that the kernel holds until they are taken: a first one that it refuses is not tried again.
constexpr int kBacklog = 4096;
// What CURVE may add to a frame, with room to spare.
constexpr std::size_t kSealing = 4096;
// Below this a copy is cheaper than the bookkeeping of a borrowed payload.
constexpr std::size_t kCopyBelow = 4096;
// Smaller messages all take the first connection: to spread them would only bring them out of order.
constexpr std::size_t kSpreadFrom = 32 * 1024;
// An endpoint spins before it sleeps only if it last waited for less than this, for a payload smaller than this: beside
// a longer wait a wake-up counts for little, while ZeroMQ's I/O thread, which moves the bytes, has a use for the core.
constexpr Duration kShortWait = std::chrono::microseconds(100);
constexpr std::size_t kShortPayloadOverTcp = 128 * 1024;
constexpr std::size_t kShortPayloadOverIpc = 32 * 1024;  // 64 KB there and back: 95 us, and 155 us with the spin

bool is_loopback(const std::string& host) {
  const Result<SocketAddress> address = SocketAddress::of_host(host);
  return address.ok() && address->is_loopback();
}

class PayloadLease final : public Message::Lease {
 public:
  explicit PayloadLease(zmq::message_t frame) : frame_(std::move(frame)) {}
  std::span<const std::byte> bytes() const { return {frame_.data<std::byte>(), frame_.size()}; }

 private:
  zmq::message_t frame_;
};

// One of the connections between two members, by the key that its sender proved to have.
struct Connection {
  std::uint32_t from = 0;  // rank
  std::uint32_t number = 0;
};

std::string name_of(Connection connection) { return fmt::format("{}/{}", connection.from, connection.number); }

// Which of the `connections` of each of the `members` it came over; nothing if it came over no connection of theirs.
std::optional<Connection> connection_of(zmq::message_t& frame, std::size_t members, std::size_t connections) {
  const std::string user = user_of(frame);
  Connection connection;
  const char* const end = user.data() + user.size();
  const auto [slash, error] = std::from_chars(user.data(), end, connection.from);
  if (error != std::errc() || slash == end || *slash != '/') return std::nullopt;
  if (std::from_chars(slash + 1, end, connection.number).ptr != end) return std::nullopt;
  if (connection.from >= members || connection.number >= connections) return std::nullopt;
  return connection;
}

class ZmqTransport final : public Transport {
 public:
  ZmqTransport(bool over_tcp, const TransportOptions& options)
      : over_tcp_(over_tcp),
        rank_(options.rank),
        size_(options.size),
        run_(hash_of(options.run_id + "/" + options.group)),
        keys_(options.keys, options.group),
        stays_here_(!over_tcp || is_loopback(options.host)),
        largest_(options.largest_payload),
        context_(options.connections),
        inbox_(context_, zmq::socket_type::pull),
        outboxes_(static_cast<std::size_t>(options.size)),
        connections_(static_cast<std::size_t>(options.connections)),
        begun_(outboxes_.size() * connections_),
        due_(static_cast<std::size_t>(options.size)),
        order_(options.size) {
    inbox_.set(zmq::sockopt::linger, 0);
    inbox_.set(zmq::sockopt::rcvhwm, 0);
    inbox_.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(largest_ + kSealing));
    inbox_.set(zmq::sockopt::backlog, kBacklog);
    if (!over_tcp) admit_own_user(inbox_);
    authenticator_.emplace(context_, keys_.listener(rank_), inbox_);
    const auto handshake_time = std::chrono::ceil<std::chrono::milliseconds>(options.handshake_time);
    inbox_.set(zmq::sockopt::handshake_ivl, static_cast<int>(handshake_time.count()));
    for (int peer = 0; peer < size_; ++peer) {
      for (int number = 0; number < options.connections; ++number) {
        authenticator_->admit(keys_.connector(peer, number).public_key,
                              name_of({static_cast<std::uint32_t>(peer), static_cast<std::uint32_t>(number)}));
      }
    }
  }

  ~ZmqTransport() override {
    if (!interrupted_.load()) return;
    for (Outbox& outbox : outboxes_) {
      for (zmq::socket_t& socket : outbox.sockets) socket.set(zmq::sockopt::linger, 0);
    }
  }

  // Returns the address that peers connect to.
  std::string bind(const TransportOptions& options) {
    if (over_tcp_) {
      bind_over_tcp(inbox_, options.host);
    } else {
      inbox_.bind(new_ipc_address());
    }
    return inbox_.get(zmq::sockopt::last_endpoint);
  }
  void know(std::vector<std::string> addresses) { addresses_ = std::move(addresses); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return over_tcp_ ? "tcp" : "ipc"; }

  Result<std::span<std::byte>> allocate(std::size_t bytes) override {
    memory_.emplace_back((bytes + sizeof(float) - 1) / sizeof(float));
    return std::as_writable_bytes(memory_.back().span()).first(bytes);
  }

  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override {
    SYNCOPATE_RETURN_IF_ERROR(check_message(header, payload, largest_));
    Outbox& outbox = outboxes_[static_cast<std::size_t>(peer)];
    const ZmqPreamble preamble{
        .from = static_cast<std::uint32_t>(rank_), .run = run_, .number = outbox.sent, .payload_bytes = payload.size()};
    zmq::message_t head(sizeof(preamble) + header.size());
    std::memcpy(head.data(), &preamble, sizeof(preamble));
    std::memcpy(head.data<char>() + sizeof(preamble), header.data(), header.size());
    try {
      if (outbox.sockets.empty()) connect(peer);
      zmq::socket_t& socket = outbox.sockets[payload.size() < kSpreadFrom ? 0 : outbox.spread++ % connections_];
      SYNCOPATE_RETURN_IF_ERROR(send_part(socket, head, deadline));
      ++outbox.sent;
      if (payload.empty()) return Status();
      zmq::message_t body = payload.size() < kCopyBelow || pending == nullptr
                                ? zmq::message_t(payload.data(), payload.size())
                                : borrowed_.borrow(payload, pending->counter());
      counters_.payload_bytes_out += static_cast<std::int64_t>(payload.size());
      SYNCOPATE_RETURN_IF_ERROR(send_part(socket, body, deadline));
      const ZmqTrailer trailer{.number = preamble.number};
      zmq::message_t tail(&trailer, sizeof(trailer));
      return send_part(socket, tail, deadline);
    } catch (const zmq::error_t& error) {
      return Status::internal(fmt::format("sending to peer {}: {}", peer, error.what()));
    }
  }

  Result<Message> receive(TimePoint deadline) override {
    try {
      while (true) {
        if (std::optional<Message> message = order_.take()) return std::move(*message);
        zmq::message_t part;
        SYNCOPATE_RETURN_IF_ERROR(receive_part(part, deadline));
        std::uint64_t number = 0;
        std::optional<Message> message = completed_by(part, number);
        if (!message) continue;
        if (connections_ == 1) {
          if (number != due_[static_cast<std::size_t>(message->from())]) {
            drop("a message that is not the next one of its sender");
            continue;
          }
          ++due_[static_cast<std::size_t>(message->from())];
          return std::move(*message);
        }
        if (!order_.put(number, std::move(*message))) drop("a message that came before, or from far ahead");
      }
    } catch (const zmq::error_t& error) {
      return Status::internal(fmt::format("receiving: {}", error.what()));
    }
  }

  Status wait(const PendingSends& pending, TimePoint deadline) override {
    while (!pending.none()) {
      if (interrupted_.load()) return Status::cancelled("interrupted");
      const TimePoint now = clock_.now();
      if (now >= deadline) return Status::deadline_exceeded("the network has not taken what was sent");
      borrowed_.wait_until(pending, std::min(deadline, now + Duration(kLookUpEvery)));
    }
    return Status();
  }

  void progress() override {}
  void interrupt() override { interrupted_.store(true); }
  TransportCounters counters() const override {
    TransportCounters counters = counters_;
    counters.rejected = authenticator_->rejected();
    return counters;
  }

 private:
  struct Outbox {
    std::vector<zmq::socket_t> sockets;  // one a connection; connected at the first send
    std::uint64_t sent = 0;              // messages
    std::size_t spread = 0;              // messages that took connections in turn
  };

  // What has arrived of a message over one connection.
  struct Parts {
    ZmqPreamble preamble;
    std::optional<std::string> head;  // without the preamble
    std::optional<zmq::message_t> body;
  };

  void connect(int peer) {
    std::vector<zmq::socket_t>& sockets = outboxes_[static_cast<std::size_t>(peer)].sockets;
    while (sockets.size() < connections_) {
      zmq::socket_t& socket = sockets.emplace_back(context_, zmq::socket_type::push);
      socket.set(zmq::sockopt::linger, static_cast<int>(kLinger.count()));
      socket.set(zmq::sockopt::sndhwm, 0);
      const auto number = static_cast<int>(sockets.size()) - 1;
      secure_connector(socket, keys_.listener(peer).public_key, keys_.connector(rank_, number));
      // On one host a connection ends with one of the two processes: whoever listens there afterwards is no member.
      if (stays_here_) socket.set(zmq::sockopt::reconnect_ivl, -1);
      connect_to(socket, addresses_[static_cast<std::size_t>(peer)]);
    }
  }

  Status send_part(zmq::socket_t& socket, zmq::message_t& part, TimePoint deadline) {
    while (!socket.send(part, zmq::send_flags::dontwait)) {
      if (interrupted_.load()) return Status::cancelled("interrupted");
      if (clock_.now() >= deadline) return Status::deadline_exceeded("the outbox is full");
      zmq::pollitem_t item{socket.handle(), 0, ZMQ_POLLOUT, 0};
      zmq::poll(&item, 1, std::chrono::duration_cast<std::chrono::milliseconds>(kLookUpEvery));
    }
    return Status();
  }

  Status receive_part(zmq::message_t& part, TimePoint deadline) {
    if (interrupted_.load()) return Status::cancelled("interrupted");
    if (inbox_.recv(part, zmq::recv_flags::dontwait)) return Status();
    const TimePoint begin = clock_.now();
    const bool soon =
        last_wait_ < kShortWait && last_payload_ < (over_tcp_ ? kShortPayloadOverTcp : kShortPayloadOverIpc);
    const Status status = wait_for_part(part, soon ? begin + kSpinBeforeSleep : begin, deadline);
    last_wait_ = clock_.now() - begin;
    return status;
  }

  // Spins until `spin_until`, then sleeps.
  Status wait_for_part(zmq::message_t& part, TimePoint spin_until, TimePoint deadline) {
    while (clock_.now() < std::min(spin_until, deadline)) {
      sched_yield();
      if (inbox_.recv(part, zmq::recv_flags::dontwait)) return Status();
    }
    while (true) {
      if (interrupted_.load()) return Status::cancelled("interrupted");
      const Duration left = deadline - clock_.now();
      const bool late = left <= Duration::zero();
      if (!late) set_receive_timeout(std::min<Duration>(left, kLookUpEvery));
      if (inbox_.recv(part, late ? zmq::recv_flags::dontwait : zmq::recv_flags::none)) return Status();
      if (late) return Status::deadline_exceeded("no message");
    }
  }

  void set_receive_timeout(Duration timeout) {
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(timeout);
    if (rounded == timeout_) return;
    inbox_.set(zmq::sockopt::rcvtimeo, static_cast<int>(rounded.count()));
    timeout_ = rounded;
  }

  // Takes the next part of a message. Returns the message once it is whole, and which of its sender's it is; nothing
  // if parts of it are missing, or if it does not check out.
  std::optional<Message> completed_by(zmq::message_t& part, std::uint64_t& number) {
    const std::optional<Connection> connection = connection_of(part, outboxes_.size(), connections_);
    if (!connection) return drop("a message over a connection of no member");
    Parts& parts = begun_[connection->from * connections_ + connection->number];
    if (!parts.head) {
      const std::span<const std::byte> head{part.data<std::byte>(), part.size()};
      const char* const objection = objection_to(head, run_, connection->from, parts.preamble);
      if (objection != nullptr) return drop(objection);
      number = parts.preamble.number;
      std::string header(part.data<char>() + sizeof(ZmqPreamble), part.size() - sizeof(ZmqPreamble));
      if (parts.preamble.payload_bytes == 0) return whole(*connection, std::move(header), {});
      parts.head = std::move(header);
      return std::nullopt;
    }
    if (!parts.body) {
      if (part.size() == parts.preamble.payload_bytes) {
        parts.body = std::move(part);
        return std::nullopt;
      }
      parts.head.reset();
      return drop("a payload of another size than announced");
    }
    std::string header = *std::exchange(parts.head, std::nullopt);
    zmq::message_t body = *std::exchange(parts.body, std::nullopt);
    if (!ends_as_it_begins(parts.preamble, part)) return drop("parts of several messages");
    number = parts.preamble.number;
    return whole(*connection, std::move(header), std::move(body));
  }

  Message whole(Connection connection, std::string header, zmq::message_t body) {
    last_payload_ = body.size();
    counters_.payload_bytes_in += static_cast<std::int64_t>(body.size());
    // ZeroMQ hands out small frames where they lie in its read buffer, aligned to nothing.
    const bool aligned = reinterpret_cast<std::uintptr_t>(body.data()) % alignof(float) == 0;
    auto lease = std::make_unique<PayloadLease>(aligned ? std::move(body) : zmq::message_t(body.data(), body.size()));
    const std::span<const std::byte> payload = lease->bytes();
    return Message(static_cast<int>(connection.from), std::move(header), payload, std::move(lease));
  }

  static bool ends_as_it_begins(const ZmqPreamble& preamble, const zmq::message_t& tail) {
    const ZmqTrailer trailer{.number = preamble.number};
    return tail.size() == sizeof(trailer) && std::memcmp(tail.data(), &trailer, sizeof(trailer)) == 0;
  }

  std::nullopt_t drop(const char* reason) {
    if (counters_.dropped++ == 0) log_warning("{} endpoint {}: dropped {}", name(), rank_, reason);
    return std::nullopt;
  }

  const bool over_tcp_;
  const int rank_;
  const int size_;
  const std::uint64_t run_;
  const MemberKeys keys_;
  const bool stays_here_;        // all members are on this host
  const std::uint64_t largest_;  // payload
  SteadyClock clock_;
  BorrowedPayloads borrowed_;          // outlives the context, whose threads report to it
  std::vector<AlignedBuffer> memory_;  // outlives the context, whose threads read it
  zmq::context_t context_;
  std::optional<Authenticator> authenticator_;
  zmq::socket_t inbox_;
  std::vector<Outbox> outboxes_;        // by peer
  std::vector<std::string> addresses_;  // by peer
  const std::size_t connections_;       // to each peer
  std::vector<Parts> begun_;            // by peer and connection
  std::vector<std::uint64_t> due_;      // number of the next message, by peer, over one connection
  MessageOrder order_;                  // of what came over several connections
  std::chrono::milliseconds timeout_{-1};
  Duration last_wait_{0};
  std::size_t last_payload_ = 0;
  std::atomic<bool> interrupted_{false};
  TransportCounters counters_;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_zmq_transport(bool over_tcp, const TransportOptions& options,
                                                      Rendezvous& rendezvous, TimePoint deadline) {
  if (options.connections < 1 || options.connections > kMaxConnections) {
    return Status::invalid_argument(
        fmt::format("{} connections: must be 1 to {}", options.connections, kMaxConnections));
  }
  try {
    auto transport = std::make_unique<ZmqTransport>(over_tcp, options);
    SYNCOPATE_ASSIGN_OR_RETURN(
        std::vector<std::string> addresses,
        rendezvous.exchange(options.group, options.rank, options.size, transport->bind(options), deadline));
    transport->know(std::move(addresses));
    return std::unique_ptr<Transport>(std::move(transport));
  } catch (const zmq::error_t& error) {
    return Status::internal(fmt::format("opening a ZeroMQ endpoint: {}", error.what()));
  }
}

}  // namespace syncopate
