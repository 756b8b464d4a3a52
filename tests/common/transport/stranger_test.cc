// Who does not have a run's keys gets nothing through to its endpoints, whatever they know beside.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <zmq.hpp>

#include "common/file_descriptor.h"
#include "common/transport/inproc_transport.h"
#include "common/transport/make_transport.h"
#include "common/transport/secure_sockets.h"
#include "tests/support/cluster.h"

namespace syncopate {
namespace {

using testing_support::run_ranks;
using testing_support::soon;

void secure_as_member(zmq::socket_t& socket, const RunKeys& keys) {
  secure_connector(socket, keys.pair("data listener").public_key, keys.pair("data connector"));
}

// Notes where the endpoints listen.
class NotingRendezvous final : public Rendezvous {
 public:
  Result<std::vector<std::string>> exchange(const std::string& group, int rank, int size, const std::string& value,
                                            TimePoint deadline) override {
    Result<std::vector<std::string>> all = inner_.exchange(group, rank, size, value, deadline);
    if (rank == 0 && all.ok()) addresses = *all;
    return all;
  }
  std::vector<std::string> addresses;

 private:
  InProcRendezvous inner_;
};

class Stranger : public testing::Test {
 protected:
  Stranger() {
    run_ranks(2, [&](int rank) {
      const TransportOptions options{.run_id = "run", .group = "test", .rank = rank, .size = 2, .keys = keys_};
      Result<std::unique_ptr<Transport>> endpoint = make_transport(TransportKind::kTcp, options, rendezvous_, soon());
      EXPECT_TRUE(endpoint.ok()) << endpoint.status().message();
      if (endpoint.ok()) group_[rank] = std::move(*endpoint);
    });
  }

  const std::string& address() const { return rendezvous_.addresses.front(); }

  // What this socket sends does not arrive, and endpoint 1's next message does. `settled` returns when the stranger has
  // been turned away, as far as that can be seen.
  void expect_unheard(zmq::socket_t& stranger) {
    stranger.set(zmq::sockopt::linger, 0);
    stranger.set(zmq::sockopt::handshake_ivl, 0);
    zmq::socket_t events(context_, zmq::socket_type::pair);
    ASSERT_EQ(zmq_socket_monitor(stranger.handle(), "inproc://events", ZMQ_EVENT_ALL), 0);
    events.connect("inproc://events");
    stranger.connect(address());
    stranger.send(zmq::str_buffer("from a stranger"), zmq::send_flags::dontwait);
    EXPECT_TRUE(is_turned_away(events));
    expect_first_message_is_endpoint_ones();
    EXPECT_TRUE(counts_a_stranger()) << "they are counted at the door";
  }

  void expect_first_message_is_endpoint_ones() {
    ASSERT_TRUE(group_[1]->send(0, "of this run", {}, nullptr, soon()).ok());
    const Result<Message> message = group_[0]->receive(soon());
    ASSERT_TRUE(message.ok()) << message.status().message();
    EXPECT_EQ(message->header(), "of this run");
    EXPECT_EQ(group_[0]->counters().dropped, 0) << "strangers' bytes do not even reach the endpoint";
  }

  // The door has a thread of its own.
  bool counts_a_stranger() {
    const TimePoint deadline = soon();
    while (group_[0]->counters().turned_away == 0 && SteadyClock().now() < deadline) {
      (void)group_[0]->receive(SteadyClock().now() + std::chrono::milliseconds(10));
    }
    return group_[0]->counters().turned_away > 0;
  }

  zmq::context_t context_;
  const RunKeys keys_ = *RunKeys::make();
  NotingRendezvous rendezvous_;
  std::unique_ptr<Transport> group_[2];

 private:
  // The handshake has failed, or the connection was closed; it has not succeeded.
  static bool is_turned_away(zmq::socket_t& events) {
    events.set(zmq::sockopt::rcvtimeo, 20'000);
    zmq::message_t event, endpoint;
    while (events.recv(event) && events.recv(endpoint)) {
      std::uint16_t kind = 0;
      std::memcpy(&kind, event.data(), sizeof(kind));
      if (kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) return false;
      if (kind == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH || kind == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL ||
          kind == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL || kind == ZMQ_EVENT_DISCONNECTED) {
        return true;
      }
    }
    return false;
  }
};

TEST_F(Stranger, WithTheKeysIsNone) {
  zmq::socket_t member(context_, zmq::socket_type::push);
  member.set(zmq::sockopt::linger, 0);
  secure_as_member(member, keys_);
  member.connect(address());
  member.send(zmq::str_buffer("neither a header"), zmq::send_flags::none);
  const TimePoint deadline = soon();
  while (group_[0]->counters().dropped == 0 && SteadyClock().now() < deadline) {
    (void)group_[0]->receive(SteadyClock().now() + std::chrono::milliseconds(10));
  }
  EXPECT_EQ(group_[0]->counters().dropped, 1) << "it got through to where its bytes are looked at";
}

TEST_F(Stranger, WithoutCurveIsNotLetIn) {
  zmq::socket_t stranger(context_, zmq::socket_type::push);
  expect_unheard(stranger);
}

TEST_F(Stranger, WithTheKeysOfAnotherRunIsNotLetIn) {
  zmq::socket_t stranger(context_, zmq::socket_type::push);
  secure_as_member(stranger, *RunKeys::make());
  expect_unheard(stranger);
}

// Even the listener's public key, which nobody outside of the run knows, is not enough.
TEST_F(Stranger, WhoKnowsTheListenersPublicKeyIsNotLetInWithAKeyOfTheirOwn) {
  zmq::socket_t stranger(context_, zmq::socket_type::push);
  secure_connector(stranger, keys_.pair("data listener").public_key, RunKeys::make()->pair("data connector"));
  expect_unheard(stranger);
}

TEST_F(Stranger, WhoSendsPlainBytesIsCutOff) {
  sockaddr_in to{.sin_family = AF_INET};
  const std::string port = address().substr(address().rfind(':') + 1);
  in_port_t number = 0;
  std::from_chars(port.data(), port.data() + port.size(), number);
  to.sin_port = htons(number);
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  const FileDescriptor plain(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(plain.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  const std::string garbage(4096, 'x');
  ASSERT_EQ(send(plain.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL), static_cast<ssize_t>(garbage.size()));
  const timeval patience{.tv_sec = 20};
  setsockopt(plain.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  char answer[256];
  ssize_t count = 0;
  while ((count = recv(plain.get(), answer, sizeof(answer), 0)) > 0) {
  }
  EXPECT_TRUE(count == 0 || errno == ECONNRESET) << "it was not cut off";
  expect_first_message_is_endpoint_ones();
}

}  // namespace
}  // namespace syncopate
