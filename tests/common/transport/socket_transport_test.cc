// What plain sockets promise beyond what every transport does: who is turned away, what ends a connection, and that
// nobody waits for good.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <set>
#include <thread>

#include "tests/common/transport/socket_meeting.h"
#include "tests/support/board_rendezvous.h"

namespace syncopate {
namespace {

using testing::HasSubstr;
using testing_support::connect_group;
using testing_support::run_ranks;
using testing_support::soon;

using testing_support::bytes_of;
using testing_support::kGroup;
using testing_support::KnownAddresses;
using testing_support::options_of;
using testing_support::RawConnection;
using testing_support::SocketMeeting;

class PlainSockets : public testing::Test, protected SocketMeeting {};

TEST_F(PlainSockets, TurnsAwayWhoSendsArbitraryBytes) { expect_rejected(std::string(4096, 'x')); }

TEST_F(PlainSockets, TurnsAwayWhoIsOfAnotherRun) {
  Hello other = hello();
  ++other.run;
  expect_rejected(bytes_of(other));
}

TEST_F(PlainSockets, TurnsAwayWhoSpeaksAnotherVersion) {
  Hello other = hello();
  ++other.version;
  expect_rejected(bytes_of(other));
}

TEST_F(PlainSockets, TurnsAwayWhoNamesACipherThatIsNone) {
  Hello other = hello();
  other.cipher = 3;
  expect_rejected(bytes_of(other));
}

TEST_F(PlainSockets, TurnsAwayWhoIsOfARankThatIsNotThere) {
  Hello other = hello();
  other.from = 2;
  expect_rejected(bytes_of(other));
}

TEST_F(PlainSockets, TurnsAwayWhoTakesItsOwnRank) {
  Hello other = hello();
  other.from = 0;
  expect_rejected(bytes_of(other));
}

TEST_F(PlainSockets, TurnsAwayWhoWantedAnotherMember) {
  Hello other = hello();
  other.to = 1;
  expect_rejected(bytes_of(other));
}

TEST_F(PlainSockets, TurnsAwayWhoEndsAmidHello) {
  RawConnection intruder(address());
  intruder.say(bytes_of(hello()).substr(0, sizeof(Hello) - 1));
  intruder.close();
  expect_peer_is_heard(1);
}

TEST_F(PlainSockets, IsNotHeldUpByWhoNeverSpeaks) {
  std::vector<std::unique_ptr<RawConnection>> intruders;
  for (int i = 0; i < 20; ++i) intruders.push_back(std::make_unique<RawConnection>(address()));
  intruders[7]->say(bytes_of(hello()).substr(0, 5));
  expect_peer_is_heard(0);
  for (const auto& intruder : intruders) EXPECT_TRUE(intruder->is_cut_off()) << "nobody listens once all are there";
}

TEST_F(PlainSockets, DoesNotGrowWithWhoNeverSpeaks) {
  std::vector<std::unique_ptr<RawConnection>> intruders;
  for (int i = 0; i < 300; ++i) intruders.push_back(std::make_unique<RawConnection>(address()));
  EXPECT_TRUE(intruders[0]->is_cut_off());
  expect_peer_is_heard(300 - 256 + 1);  // the peer too is silent at first
}

// Plain or encrypted, the beginning is the same.
class EitherSockets : public testing::TestWithParam<bool>, protected SocketMeeting {
 protected:
  EitherSockets() : SocketMeeting(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Are, EitherSockets, testing::Bool(),
                         [](const auto& encrypted) { return encrypted.param ? "Encrypted" : "Plain"; });

TEST_P(EitherSockets, TurnAwayWhoseProofIsNone) {
  RawConnection intruder(address());
  intruder.say(bytes_of(hello()));
  EXPECT_EQ(intruder.hear(sizeof(Hello)).size(), sizeof(Hello));
  const RecordHead head{SocketCipher::kTagBytes};
  intruder.say(bytes_of(head) + std::string(SocketCipher::kTagBytes, 'x'));
  intruder.hear(sizeof(head) + SocketCipher::kTagBytes);
  EXPECT_TRUE(intruder.is_cut_off());
  expect_peer_is_heard(1);
}

TEST_P(EitherSockets, TurnAwayAKeyThatIsNone) {
  Hello says = hello();
  says.key = {};
  expect_rejected(bytes_of(says));
}

TEST_P(EitherSockets, TurnAwayTheKeysOfAnotherRun) {
  KnownAddresses known(addresses());
  const Result<std::unique_ptr<Transport>> intruder =
      make_transport(TransportKind::kSockets, options_of(1, 2, GetParam(), *RunKeys::make()), known, soon());
  EXPECT_EQ(intruder.status().code(), Code::kPeerLost);
  expect_peer_is_heard(1);
}

TEST_P(EitherSockets, AreNotHeldUpByWhoNeverProvesItself) {
  RawConnection intruder(address());
  intruder.say(bytes_of(hello()));
  EXPECT_EQ(intruder.hear(sizeof(Hello)).size(), sizeof(Hello));
  expect_peer_is_heard(0);
}

TEST_F(PlainSockets, TakesAMessageThatComesByteByByte) {
  RawConnection peer(address());
  const std::string payload = "four";
  const std::string frame = bytes_of(FrameHead{.header_bytes = 3, .payload_bytes = 4}) + "abc" + payload;
  const std::unique_ptr<Transport> endpoint = meet_raw(peer, "");
  ASSERT_TRUE(endpoint);
  for (const char byte : frame) {
    EXPECT_EQ(endpoint->receive(SteadyClock().now()).status().code(), Code::kDeadlineExceeded);
    peer.say(std::string(1, byte));
  }
  const Result<Message> message = endpoint->receive(soon());
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->from(), 1);
  EXPECT_EQ(message->header(), "abc");
  EXPECT_EQ(std::memcmp(message->payload().data(), payload.data(), payload.size()), 0);
  EXPECT_EQ(message->payload().size(), payload.size());
}

TEST_F(PlainSockets, EndsAConnectionThatAnnouncesAHugePayload) {
  expect_connection_ends(bytes_of(FrameHead{.payload_bytes = kMaxPayloadBytes + 1}));
}

TEST_F(PlainSockets, EndsAConnectionThatAnnouncesALongHeader) {
  expect_connection_ends(bytes_of(FrameHead{.header_bytes = kMaxWireHeaderBytes + 1}) + std::string(1000, 'x'));
}

TEST_F(PlainSockets, EndsAConnectionWhoseFramesAreNone) {
  expect_connection_ends(bytes_of(FrameHead{.kind = FrameHead::Kind{2}}));
}

TEST_F(PlainSockets, EndsAConnectionWhoseGoodbyeIsNone) {
  expect_connection_ends(bytes_of(FrameHead{.kind = FrameHead::Kind::kGoodbye, .payload_bytes = 1}));
}

TEST_F(PlainSockets, GivesNothingOfAMessageThatWasCutOff) {
  RawConnection peer(address());
  const FrameHead head{.header_bytes = 1, .payload_bytes = 100000};
  const std::unique_ptr<Transport> endpoint = meet_raw(peer, bytes_of(head) + std::string(50000, 'x'));
  ASSERT_TRUE(endpoint);
  peer.close();
  EXPECT_EQ(endpoint->receive(soon()).status().code(), Code::kPeerLost);
  EXPECT_EQ(endpoint->counters().dropped, 0) << "a loss, and no fault of the peer's";
}

TEST_F(PlainSockets, IsInterruptedWhileThePeerTakesNothing) {
  RawConnection peer(address());
  const std::unique_ptr<Transport> endpoint = meet_raw(peer, "");
  ASSERT_TRUE(endpoint);
  const Result<std::span<std::byte>> memory = endpoint->allocate(64 << 20);
  ASSERT_TRUE(memory.ok());
  PendingSends pending;
  ASSERT_TRUE(endpoint->send(1, "x", *memory, &pending, soon()).ok());
  EXPECT_EQ(endpoint->wait(pending, SteadyClock().now()).code(), Code::kDeadlineExceeded);
  std::jthread interrupter([&] { endpoint->interrupt(); });
  EXPECT_EQ(endpoint->wait(pending, soon()).code(), Code::kCancelled);
}

TEST_F(PlainSockets, HoldsTheSenderBackWhoQueuesWithoutEnd) {
  RawConnection peer(address());
  const std::unique_ptr<Transport> endpoint = meet_raw(peer, "");
  ASSERT_TRUE(endpoint);
  const Result<std::span<std::byte>> memory = endpoint->allocate(64 << 20);
  ASSERT_TRUE(memory.ok());
  PendingSends pending;
  ASSERT_TRUE(endpoint->send(1, "x", *memory, &pending, soon()).ok());
  Status status;
  for (int i = 0; i < 100000 && status.ok(); ++i) status = endpoint->send(1, "x", {}, nullptr, SteadyClock().now());
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  endpoint->interrupt();
}

TEST(SocketTransport, NamesThePeersThatDoNotCome) {
  InProcRendezvous rendezvous;
  std::jthread others(
      [&] { run_ranks(2, [&](int i) { (void)rendezvous.exchange(kGroup, i + 1, 3, "does not come", soon()); }); });
  const Result<std::unique_ptr<Transport>> endpoint = make_transport(
      TransportKind::kSockets, options_of(0, 3), rendezvous, SteadyClock().now() + std::chrono::milliseconds(200));
  EXPECT_EQ(endpoint.status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(endpoint.status().message(), "no connection to peers 1, 2");
}

TEST(SocketTransport, TellsOfAPeerThatIsGoneBeforeItIsMet) {
  KnownAddresses nobody({"127.0.0.1:1", "itself"});
  const Result<std::unique_ptr<Transport>> endpoint =
      make_transport(TransportKind::kSockets, options_of(1, 2), nobody, soon());
  EXPECT_EQ(endpoint.status().code(), Code::kPeerLost);
  EXPECT_THAT(endpoint.status().message(), HasSubstr("peer 0"));
}

TEST(SocketTransport, RefusesAnAddressThatIsNone) {
  for (const char* const address : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:99999", "host:80"}) {
    KnownAddresses known({address, "itself"});
    EXPECT_EQ(make_transport(TransportKind::kSockets, options_of(1, 2), known, soon()).status().code(), Code::kDataLoss)
        << address;
  }
}

TEST(SocketTransport, HasOneConnectionToEachPeer) {
  InProcRendezvous rendezvous;
  TransportOptions options = options_of(0, 1);
  options.connections = 2;
  EXPECT_EQ(make_transport(TransportKind::kSockets, options, rendezvous, soon()).status().code(),
            Code::kInvalidArgument);
}

TEST(SocketTransport, RefusesAPayloadThatNoPeerWouldTake) {
  auto group = connect_group("sockets", 2);
  const std::span<const std::byte> payload(static_cast<const std::byte*>(nullptr), kMaxPayloadBytes + 1);
  EXPECT_EQ(group[0]->send(1, "x", payload, nullptr, soon()).code(), Code::kInvalidArgument);
}

TEST(SocketTransport, SwapsLargePayloadsThoughBothEndsWaitForTheirSendsFirst) {
  constexpr std::size_t kFloats = (64 << 20) / sizeof(float);
  auto group = connect_group("sockets", 2);
  run_ranks(2, [&](int rank) {
    Transport& self = *group[static_cast<std::size_t>(rank)];
    const Result<std::span<std::byte>> memory = self.allocate(kFloats * sizeof(float));
    ASSERT_TRUE(memory.ok());
    const std::span<float> own(reinterpret_cast<float*>(memory->data()), kFloats);
    std::iota(own.begin(), own.end(), static_cast<float>(rank));
    PendingSends pending;
    ASSERT_TRUE(self.send(1 - rank, "x", *memory, &pending, soon()).ok());
    ASSERT_TRUE(self.wait(pending, soon()).ok());
    const Result<Message> message = self.receive(soon());
    ASSERT_TRUE(message.ok());
    std::vector<float> expected(kFloats);
    std::iota(expected.begin(), expected.end(), static_cast<float>(1 - rank));
    EXPECT_TRUE(std::ranges::equal(message->floats(), expected));
  });
}

TEST(SocketTransport, KeepsOrderWhenManySmallMessagesCrossLargeOnes) {
  constexpr int kMessages = 20000;
  auto group = connect_group("sockets", 2);
  run_ranks(2, [&](int rank) {
    Transport& self = *group[static_cast<std::size_t>(rank)];
    const Result<std::span<std::byte>> memory = self.allocate(1 << 20);
    ASSERT_TRUE(memory.ok());
    const auto size_of = [](int i) { return i % 1000 == 999 ? 1u << 20 : static_cast<unsigned>(i % 50); };
    PendingSends pending;
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(self.send(1 - rank, std::to_string(i), memory->first(size_of(i)), &pending, soon()).ok());
    }
    for (int i = 0; i < kMessages; ++i) {
      const Result<Message> message = self.receive(soon());
      ASSERT_TRUE(message.ok()) << message.status().message();
      ASSERT_EQ(message->header(), std::to_string(i));
      ASSERT_EQ(message->payload().size(), size_of(i));
    }
    ASSERT_TRUE(self.wait(pending, soon()).ok());
  });
}

TEST(SocketTransport, SendsACopyOfWhatNobodyCounts) {
  auto group = connect_group("sockets", 2);
  constexpr std::size_t kBytes = 32 << 20;  // more than the kernel takes at once
  const Result<std::span<std::byte>> memory = group[0]->allocate(kBytes);
  ASSERT_TRUE(memory.ok());
  std::ranges::fill(*memory, std::byte{1});
  ASSERT_TRUE(group[0]->send(1, "x", *memory, nullptr, soon()).ok());
  std::ranges::fill(*memory, std::byte{2});
  run_ranks(2, [&](int rank) {
    if (rank == 0) {
      PendingSends last;
      ASSERT_TRUE(group[0]->send(1, "y", memory->first(1 << 20), &last, soon()).ok());
      ASSERT_TRUE(group[0]->wait(last, soon()).ok());
      return;
    }
    const Result<Message> message = group[1]->receive(soon());
    ASSERT_TRUE(message.ok());
    EXPECT_TRUE(std::ranges::all_of(message->payload(), [](std::byte byte) { return byte == std::byte{1}; }));
  });
}

TEST(SocketTransport, UsesTheSameBufferForOneMessageAfterAnother) {
  constexpr int kMessages = 10;
  auto group = connect_group("sockets", 2);
  run_ranks(2, [&](int rank) {
    Transport& self = *group[static_cast<std::size_t>(rank)];
    const Result<std::span<std::byte>> memory = self.allocate(1 << 20);
    ASSERT_TRUE(memory.ok());
    std::set<const std::byte*> buffers;
    for (int i = 0; i < kMessages; ++i) {
      PendingSends pending;
      if (rank == 0) {
        ASSERT_TRUE(self.send(1, "x", *memory, &pending, soon()).ok());
        ASSERT_TRUE(self.receive(soon()).ok());
      } else {
        const Result<Message> message = self.receive(soon());
        ASSERT_TRUE(message.ok());
        buffers.insert(message->payload().data());
        ASSERT_TRUE(self.send(0, "done", {}, nullptr, soon()).ok());
      }
    }
    EXPECT_EQ(buffers.size(), rank == 0 ? 0u : 1u);
  });
}

TEST(SocketTransport, SendsWhatIsQueuedBeforeItGoes) {
  constexpr std::size_t kBytes = 64 << 20;
  auto group = connect_group("sockets", 2);
  run_ranks(2, [&](int rank) {
    if (rank == 0) {
      const Result<std::span<std::byte>> memory = group[0]->allocate(kBytes);
      ASSERT_TRUE(memory.ok());
      PendingSends pending;
      ASSERT_TRUE(group[0]->send(1, "large", *memory, &pending, soon()).ok());
      ASSERT_TRUE(group[0]->send(1, "last words", {}, nullptr, soon()).ok());
      group[0].reset();
      EXPECT_TRUE(pending.none());
      return;
    }
    // What comes in while the other one goes must not cost its last words.
    ASSERT_TRUE(group[1]->send(0, "not read", {}, nullptr, soon()).ok());
    for (const char* const header : {"large", "last words"}) {
      const Result<Message> message = group[1]->receive(soon());
      ASSERT_TRUE(message.ok()) << message.status().message();
      EXPECT_EQ(message->header(), header);
    }
    EXPECT_EQ(group[1]->receive(soon()).status().code(), Code::kPeerLost);
  });
}

TEST(SocketTransport, HearsTheOthersOutWhenAPeerHasLeftInOrder) {
  auto group = connect_group("sockets", 3);
  group[2].reset();
  const TimePoint noticed = SteadyClock().now() + std::chrono::milliseconds(100);
  EXPECT_EQ(group[0]->receive(noticed).status().code(), Code::kDeadlineExceeded);
  ASSERT_TRUE(group[1]->send(0, "last words", {}, nullptr, soon()).ok());
  EXPECT_TRUE(group[0]->receive(soon()).ok());
  EXPECT_EQ(group[0]->receive(soon()).status().message(), "peer 2 is gone");
}

TEST(SocketTransport, TellsOfAPeerThatWasKilled) {
  testing_support::BoardRendezvous rendezvous;
  const pid_t child = fork();
  if (child == 0) {
    const auto endpoint = make_transport(TransportKind::kSockets, options_of(1, 2), rendezvous, soon());
    if (!endpoint.ok() || !(*endpoint)->send(0, "alive", {}, nullptr, soon()).ok()) _exit(1);
    (void)(*endpoint)->receive(soon());
    _exit(1);
  }
  const auto endpoint = make_transport(TransportKind::kSockets, options_of(0, 2), rendezvous, soon());
  ASSERT_TRUE(endpoint.ok()) << endpoint.status().message();
  EXPECT_TRUE((*endpoint)->receive(soon()).ok());
  kill(child, SIGKILL);
  EXPECT_EQ((*endpoint)->receive(soon()).status().code(), Code::kPeerLost);
  EXPECT_EQ((*endpoint)->send(1, "x", {}, nullptr, soon()).code(), Code::kPeerLost);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
}

}  // namespace
}  // namespace syncopate
