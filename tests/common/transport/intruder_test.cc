// Who does not have a run's secret gets nothing through to its endpoints over ZeroMQ, whatever they know beside; and
// who has it speaks in one name.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <zmq.hpp>

#include "common/hash.h"
#include "common/os/file_descriptor.h"
#include "common/transport/inproc_transport.h"
#include "common/transport/make_transport.h"
#include "common/transport/member_keys.h"
#include "common/transport/secure_sockets.h"
#include "common/transport/zmq_frame.h"
#include "tests/support/cluster.h"

namespace syncopate {
namespace {

using testing_support::run_ranks;
using testing_support::soon;

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

class Intruder : public testing::TestWithParam<TransportKind> {
 protected:
  static constexpr int kSize = 3;

  Intruder() {
    run_ranks(kSize, [&](int rank) {
      const TransportOptions options{.run_id = "run",
                                     .group = kGroup,
                                     .rank = rank,
                                     .size = kSize,
                                     .keys = keys_,
                                     .handshake_time = std::chrono::milliseconds(500)};
      Result<std::unique_ptr<Transport>> endpoint = make_transport(GetParam(), options, rendezvous_, soon());
      EXPECT_TRUE(endpoint.ok()) << endpoint.status().message();
      if (endpoint.ok()) group_[rank] = std::move(*endpoint);
    });
  }

  const std::string& address() const { return rendezvous_.addresses.front(); }

  // As member `rank` of the group does that has these keys.
  static void secure_as(zmq::socket_t& socket, int rank, const RunKeys& keys, const std::string& group = kGroup) {
    const MemberKeys of_group(keys, group);
    secure_connector(socket, of_group.listener(0).public_key, of_group.connector(rank));
  }

  // A well-formed message that says to be member `from`'s first.
  static std::string message_from(std::uint32_t from) {
    const ZmqPreamble preamble{.from = from, .run = hash_of(std::string("run/") + kGroup)};
    return std::string(reinterpret_cast<const char*>(&preamble), sizeof(preamble)) + "forged";
  }

  // Endpoint 0 hears nothing, and counts this as one message of no use.
  void expect_dropped() {
    const TimePoint deadline = soon();
    while (group_[0]->counters().dropped == 0 && SteadyClock().now() < deadline) {
      const Result<Message> message = group_[0]->receive(SteadyClock().now() + std::chrono::milliseconds(10));
      ASSERT_FALSE(message.ok());
    }
    EXPECT_EQ(group_[0]->counters().dropped, 1);
  }

  // What this socket sends does not arrive, and endpoint 1's next message does. `settled` returns when the intruder has
  // been turned away, as far as that can be seen.
  void expect_unheard(zmq::socket_t& intruder) {
    intruder.set(zmq::sockopt::linger, 0);
    intruder.set(zmq::sockopt::handshake_ivl, 0);
    intruder.set(zmq::sockopt::reconnect_ivl, 100);
    zmq::socket_t events(context_, zmq::socket_type::pair);
    ASSERT_EQ(zmq_socket_monitor(intruder.handle(), "inproc://events", ZMQ_EVENT_ALL), 0);
    events.connect("inproc://events");
    intruder.connect(address());
    intruder.send(zmq::message_t(message_from(1)), zmq::send_flags::dontwait);
    EXPECT_TRUE(is_rejected(events));
    expect_first_message_is_endpoint_ones();
    EXPECT_TRUE(counts_a_rejection()) << "they are counted at the door";
  }

  void expect_first_message_is_endpoint_ones() {
    ASSERT_TRUE(group_[1]->send(0, "of this run", {}, nullptr, soon()).ok());
    const Result<Message> message = group_[0]->receive(soon());
    ASSERT_TRUE(message.ok()) << message.status().message();
    EXPECT_EQ(message->header(), "of this run");
    EXPECT_EQ(group_[0]->counters().dropped, 0) << "intruders' bytes do not even reach the endpoint";
  }

  // The door has a thread of its own.
  bool counts_a_rejection() {
    const TimePoint deadline = soon();
    while (group_[0]->counters().rejected == 0 && SteadyClock().now() < deadline) {
      (void)group_[0]->receive(SteadyClock().now() + std::chrono::milliseconds(10));
    }
    return group_[0]->counters().rejected > 0;
  }

  // A connection to endpoint 0, over tcp.
  FileDescriptor connected() const {
    sockaddr_in to{.sin_family = AF_INET};
    const std::string port = address().substr(address().rfind(':') + 1);
    in_port_t number = 0;
    std::from_chars(port.data(), port.data() + port.size(), number);
    to.sin_port = htons(number);
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    FileDescriptor connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(connection.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    return connection;
  }

  static void expect_cut_off(const FileDescriptor& connection) {
    const timeval patience{.tv_sec = 20};
    setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    char answer[256];
    ssize_t count = 0;
    while ((count = recv(connection.get(), answer, sizeof(answer), 0)) > 0) {
    }
    EXPECT_TRUE(count == 0 || errno == ECONNRESET) << "it was not cut off";
  }

  static constexpr const char* kGroup = "test";
  zmq::context_t context_;
  const RunKeys keys_ = *RunKeys::make();
  NotingRendezvous rendezvous_;
  std::unique_ptr<Transport> group_[kSize];

 private:
  // The handshake has failed, or the connection was closed; it has not succeeded.
  static bool is_rejected(zmq::socket_t& events) {
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

INSTANTIATE_TEST_SUITE_P(At, Intruder, testing::Values(TransportKind::kTcp, TransportKind::kIpc),
                         [](const auto& door) { return door.param == TransportKind::kTcp ? "Tcp" : "Ipc"; });

TEST_P(Intruder, WithTheKeysIsNone) {
  zmq::socket_t member(context_, zmq::socket_type::push);
  member.set(zmq::sockopt::linger, 0);
  secure_as(member, 1, keys_);
  member.connect(address());
  member.send(zmq::str_buffer("neither a header"), zmq::send_flags::none);
  expect_dropped();
  EXPECT_EQ(group_[0]->counters().rejected, 0) << "it got through to where its bytes are looked at";
}

TEST_P(Intruder, ThatIsAMemberSpeaksInItsOwnNameAlone) {
  zmq::socket_t member(context_, zmq::socket_type::push);
  member.set(zmq::sockopt::linger, 0);
  secure_as(member, 1, keys_);
  member.connect(address());
  member.send(zmq::message_t(message_from(2)), zmq::send_flags::none);
  expect_dropped();
  member.send(zmq::message_t(message_from(1)), zmq::send_flags::none);
  const Result<Message> message = group_[0]->receive(soon());
  ASSERT_TRUE(message.ok()) << message.status().message();
  EXPECT_EQ(message->from(), 1);
}

TEST_P(Intruder, WithoutAnyProofIsNotLetIn) {
  zmq::socket_t intruder(context_, zmq::socket_type::push);
  expect_unheard(intruder);
}

TEST_P(Intruder, WithTheKeysOfAnotherRunIsNotLetIn) {
  zmq::socket_t intruder(context_, zmq::socket_type::push);
  secure_as(intruder, 1, *RunKeys::make());
  expect_unheard(intruder);
}

TEST_P(Intruder, WithTheKeysOfAnotherGroupIsNotLetIn) {
  zmq::socket_t intruder(context_, zmq::socket_type::push);
  secure_as(intruder, 1, keys_, "another");
  expect_unheard(intruder);
}

TEST_P(Intruder, WhoIsNoMemberOfTheGroupIsNotLetIn) {
  zmq::socket_t intruder(context_, zmq::socket_type::push);
  secure_as(intruder, kSize, keys_);
  expect_unheard(intruder);
}

// Even the listener's public key, which nobody outside of the run knows, is not enough.
TEST_P(Intruder, WhoKnowsTheListenersPublicKeyIsNotLetInWithAKeyOfTheirOwn) {
  zmq::socket_t intruder(context_, zmq::socket_type::push);
  secure_connector(intruder, MemberKeys(keys_, kGroup).listener(0).public_key, RunKeys::make()->pair("any"));
  expect_unheard(intruder);
}

// As a process of the run does that is killed before its hello.
TEST_P(Intruder, WhoEndsBeforeAProofIsNotSaidToBeOneForCertain) {
  if (GetParam() != TransportKind::kTcp) GTEST_SKIP() << "the same as over tcp";
  testing::internal::CaptureStdout();  // where the log goes that no program has begun
  testing::internal::CaptureStderr();
  { const FileDescriptor begun = connected(); }
  EXPECT_TRUE(counts_a_rejection());
  EXPECT_THAT(
      testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(),
      testing::HasSubstr("it ended, or was silent, before it had proved to be of this run: an intruder's, or of "
                         "a process that was killed as it began"));
}

TEST_P(Intruder, WhoOpensAConnectionAndSaysNothingIsCutOff) {
  if (GetParam() != TransportKind::kTcp) GTEST_SKIP() << "the same as over tcp";
  const FileDescriptor silent = connected();
  expect_cut_off(silent);
  EXPECT_TRUE(counts_a_rejection());
}

TEST_P(Intruder, WhoSendsPlainBytesIsCutOff) {
  if (GetParam() != TransportKind::kTcp) GTEST_SKIP() << "the same as over tcp";
  const FileDescriptor plain = connected();
  const std::string garbage(4096, 'x');
  ASSERT_EQ(send(plain.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL), static_cast<ssize_t>(garbage.size()));
  expect_cut_off(plain);
  expect_first_message_is_endpoint_ones();
}

}  // namespace
}  // namespace syncopate
