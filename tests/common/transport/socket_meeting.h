// Endpoints over plain sockets, and connections to them that a test holds in its own hands.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <future>

#include "common/hash.h"
#include "common/os/file_descriptor.h"
#include "common/transport/inproc_transport.h"
#include "common/transport/make_transport.h"
#include "common/transport/socket_frame.h"
#include "common/transport/socket_handshake.h"
#include "tests/support/cluster.h"
#include "tests/support/test_keys.h"

namespace syncopate::testing_support {

inline constexpr char kRun[] = "run";
inline constexpr char kGroup[] = "test";

std::string bytes_of(const auto& value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }

// A connection that a test holds in its own hands.
class RawConnection {
 public:
  // To "127.0.0.1:4711".
  explicit RawConnection(const std::string& address) {
    sockaddr_in to{.sin_family = AF_INET};
    const std::size_t colon = address.rfind(':');
    in_port_t port = 0;
    std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
    to.sin_port = htons(port);
    inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0) << address;
    const timeval patience{.tv_sec = 30};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }

  void say(const std::string& bytes) {
    EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  std::string hear(std::size_t bytes) {
    std::string heard(bytes, '\0');
    const ssize_t count = recv(socket_.get(), heard.data(), bytes, MSG_WAITALL);
    heard.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return heard;
  }

  bool is_cut_off() {
    char byte;
    const ssize_t count = recv(socket_.get(), &byte, 1, 0);
    return count == 0 || (count < 0 && errno == ECONNRESET);
  }

  int descriptor() const { return socket_.get(); }
  void close() { socket_ = FileDescriptor(); }

 private:
  FileDescriptor socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
};

// Tells what has been told before.
class KnownAddresses final : public Rendezvous {
 public:
  explicit KnownAddresses(std::vector<std::string> addresses) : addresses_(std::move(addresses)) {}
  Result<std::vector<std::string>> exchange(const std::string&, int, int, const std::string&, TimePoint) override {
    return addresses_;
  }

 private:
  std::vector<std::string> addresses_;
};

inline TransportOptions options_of(int rank, int size, bool encrypted = false, const RunKeys& keys = test_keys()) {
  return {.run_id = kRun, .group = kGroup, .rank = rank, .size = size, .keys = keys, .encrypted = encrypted};
}

// Endpoint 0 of two listens, and who comes to it is up to the test.
class SocketMeeting {
 public:
  explicit SocketMeeting(bool encrypted = false) : encrypted_(encrypted) {
    listener_ = std::async(std::launch::async, [&] {
      return make_transport(TransportKind::kSockets, options_of(0, 2, encrypted_), rendezvous_, soon());
    });
    addresses_ = *rendezvous_.exchange(kGroup, 1, 2, "nobody connects to the last", soon());
  }

  const std::string& address() const { return addresses_.front(); }

  // What endpoint 1 says, or an intruder who knows everything but the keys.
  Hello hello() const {
    return {.run = hash_of(std::string(kRun) + "/" + kGroup),
            .from = 1,
            .to = 0,
            .cipher = static_cast<std::uint32_t>(SocketCipher::Kind::kChaCha20Poly1305),
            .encrypts = encrypted_ ? 1u : 0u,
            .key = EphemeralPair().public_key()};
  }

  std::unique_ptr<Transport> connect_peer() {
    KnownAddresses known(addresses_);
    Result<std::unique_ptr<Transport>> peer =
        make_transport(TransportKind::kSockets, options_of(1, 2, encrypted_), known, soon());
    EXPECT_TRUE(peer.ok()) << peer.status().message();
    return peer.ok() ? std::move(*peer) : nullptr;
  }

  // Endpoint 0, once it has met its peer.
  std::unique_ptr<Transport> listener() {
    Result<std::unique_ptr<Transport>> endpoint = listener_.get();
    EXPECT_TRUE(endpoint.ok()) << endpoint.status().message();
    return endpoint.ok() ? std::move(*endpoint) : nullptr;
  }

  // The peer comes after all, and endpoint 0 has turned away so many.
  void expect_peer_is_heard(int rejected) {
    const std::unique_ptr<Transport> peer = connect_peer();
    const std::unique_ptr<Transport> endpoint = listener();
    ASSERT_TRUE(peer && endpoint);
    ASSERT_TRUE(peer->send(0, "of this run", {}, nullptr, soon()).ok());
    const Result<Message> message = endpoint->receive(soon());
    ASSERT_TRUE(message.ok()) << message.status().message();
    EXPECT_EQ(message->header(), "of this run");
    EXPECT_EQ(endpoint->counters().rejected, rejected);
    EXPECT_EQ(endpoint->counters().dropped, 0);
  }

  void expect_rejected(const std::string& first_words) {
    RawConnection intruder(address());
    intruder.say(first_words);
    EXPECT_TRUE(intruder.is_cut_off());
    expect_peer_is_heard(1);
  }

  // Endpoint 0 meets a raw connection that begins as endpoint 1 does, and then says `bytes`.
  std::unique_ptr<Transport> meet_raw(RawConnection& peer, const std::string& bytes) {
    const SocketHandshake::Member member{
        .run = hello().run, .rank = 1, .size = 2, .keys = test_keys(), .encrypted = encrypted_};
    SocketHandshake handshake = SocketHandshake::connecting(FileDescriptor(dup(peer.descriptor())), member, 0);
    while (handshake.advance() == SocketHandshake::State::kUnderWay) {
      pollfd item{handshake.descriptor(), handshake.events(), 0};
      EXPECT_EQ(poll(&item, 1, 30'000), 1);
    }
    EXPECT_EQ(handshake.advance(), SocketHandshake::State::kDone);
    peer.say(bytes);
    return listener();
  }

  // Endpoint 0 takes nothing of what came after hello, and gives the connection up.
  void expect_connection_ends(const std::string& bytes) {
    RawConnection peer(address());
    const std::unique_ptr<Transport> endpoint = meet_raw(peer, bytes);
    ASSERT_TRUE(endpoint);
    EXPECT_EQ(endpoint->receive(soon()).status().code(), Code::kPeerLost);
    EXPECT_EQ(endpoint->counters().dropped, 1);
    EXPECT_EQ(endpoint->send(1, "x", {}, nullptr, soon()).code(), Code::kPeerLost);
  }

  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  const bool encrypted_;
  InProcRendezvous rendezvous_;
  std::vector<std::string> addresses_;
  std::future<Result<std::unique_ptr<Transport>>> listener_;
};

}  // namespace syncopate::testing_support
