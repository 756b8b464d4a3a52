// Plain sockets with a run's keys: who does not have them is turned away, and what was changed on the way ends the
// connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <set>
#include <thread>

#include "common/transport/socket_cipher.h"
#include "tests/common/transport/socket_meeting.h"

namespace syncopate {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_support::bytes_of;
using testing_support::KnownAddresses;
using testing_support::options_of;
using testing_support::RawConnection;
using testing_support::SocketMeeting;
using testing_support::soon;

using Bytes = std::vector<std::byte>;

class EveryCipher : public testing::TestWithParam<SocketCipher::Kind> {
 protected:
  void SetUp() override {
    ASSERT_GE(sodium_init(), 0);
    if (GetParam() > SocketCipher::best()) GTEST_SKIP() << "this processor does not have it";
  }

  static Bytes sealed(SocketCipher& cipher, const Bytes& plain) {
    Bytes record(plain.size() + SocketCipher::kTagBytes);
    cipher.seal(plain, record.data());
    return record;
  }
  static bool opens(SocketCipher& cipher, const Bytes& record) {
    Bytes plain(record.size());
    return cipher.open(record, plain.data());
  }

  const SocketCipher::Key key_{1, 2, 3};
  const Bytes plain_{100, std::byte{7}};
};

INSTANTIATE_TEST_SUITE_P(Kind, EveryCipher,
                         testing::Values(SocketCipher::Kind::kChaCha20Poly1305, SocketCipher::Kind::kAes256Gcm),
                         [](const auto& kind) {
                           return kind.param == SocketCipher::Kind::kAes256Gcm ? "Aes256Gcm" : "ChaCha20Poly1305";
                         });

TEST_P(EveryCipher, OpensWhatItHasSealedInOrder) {
  SocketCipher out(GetParam(), key_), in(GetParam(), key_);
  for (const std::size_t size : {0u, 1u, 100u, 100u, 65536u}) {
    const Bytes plain(size, std::byte{42});
    const Bytes record = sealed(out, plain);
    Bytes opened(size);
    ASSERT_TRUE(in.open(record, opened.data()));
    EXPECT_EQ(opened, plain);
  }
  EXPECT_NE(sealed(out, plain_), sealed(out, plain_)) << "the same twice must not look the same";
}

TEST_P(EveryCipher, DoesNotOpenWhatWasChanged) {
  for (std::size_t i = 0; i < plain_.size() + SocketCipher::kTagBytes; ++i) {
    SocketCipher out(GetParam(), key_), in(GetParam(), key_);
    Bytes record = sealed(out, plain_);
    record[i] ^= std::byte{1};
    EXPECT_FALSE(opens(in, record)) << i;
  }
}

TEST_P(EveryCipher, DoesNotOpenWhatComesTwiceOrTooEarly) {
  SocketCipher out(GetParam(), key_), twice(GetParam(), key_), early(GetParam(), key_);
  const Bytes first = sealed(out, plain_), second = sealed(out, plain_);
  EXPECT_TRUE(opens(twice, first));
  EXPECT_FALSE(opens(twice, first));
  EXPECT_FALSE(opens(early, second));
}

TEST_P(EveryCipher, OpensNothingAfterWhatItDidNotOpen) {
  SocketCipher out(GetParam(), key_), in(GetParam(), key_);
  const Bytes first = sealed(out, plain_), second = sealed(out, plain_), third = sealed(out, plain_);
  EXPECT_TRUE(opens(in, first));
  EXPECT_FALSE(opens(in, third));
  EXPECT_FALSE(opens(in, third)) << "it must not count the one that it did not open";
  EXPECT_FALSE(opens(in, second)) << "though it is the next";
}

TEST_P(EveryCipher, DoesNotOpenWhatWasSealedWithAnotherKey) {
  SocketCipher out(GetParam(), key_), in(GetParam(), {1, 2, 4});
  EXPECT_FALSE(opens(in, sealed(out, plain_)));
}

class Agreement : public testing::Test {
 protected:
  void SetUp() override { ASSERT_GE(sodium_init(), 0); }

  // The keys that each end has, as one text.
  static std::string keys_of(const EphemeralPair& own, const RunKeys& keys, const EphemeralPair& other,
                             std::string_view said) {
    EphemeralPair::Session session;
    EXPECT_TRUE(own.agree(keys, other.public_key(), said, session));
    EXPECT_NE(session.from_connector, session.from_listener);
    return bytes_of(session);
  }

  const RunKeys keys_ = *RunKeys::make();
  const EphemeralPair connector_, listener_;
};

TEST_F(Agreement, GivesBothEndsTheSameKeys) {
  EXPECT_EQ(keys_of(connector_, keys_, listener_, "said"), keys_of(listener_, keys_, connector_, "said"));
}

TEST_F(Agreement, GivesOtherKeysToOtherRunsConnectionsAndConversations) {
  const EphemeralPair another;
  const std::set<std::string> different{
      keys_of(listener_, keys_, connector_, "said"), keys_of(listener_, keys_, connector_, "not said"),
      keys_of(listener_, keys_, another, "said"), keys_of(another, keys_, connector_, "said"),
      keys_of(listener_, *RunKeys::make(), connector_, "said")};
  EXPECT_EQ(different.size(), 5u);
}

TEST_F(Agreement, RefusesAKeyThatIsNone) {
  EphemeralPair::Session session;
  EXPECT_FALSE(connector_.agree(keys_, SocketCipher::Key{}, "said", session));
}

// Passes bytes on between one who connects to it and `to`, as `through` changes them on their way there.
class Relay {
 public:
  using Through = std::function<void(std::string& bytes)>;

  Relay(const std::string& to, Through through) : through_(std::move(through)), to_(to) {
    sockaddr_in own{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(own);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&own), size), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&own), &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
    thread_ = std::jthread([this] { run(); });
  }

  const std::string& address() const { return address_; }
  // All that was passed there. Once both ends have closed.
  const std::string& passed() {
    thread_.join();
    return passed_;
  }

 private:
  void run() {
    const FileDescriptor from(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    while (true) {
      pollfd items[]{{from.get(), POLLIN, 0}, {to_.descriptor(), POLLIN, 0}};
      poll(items, 2, 60'000);
      if (items[0].revents != 0 && !pass(from.get(), to_.descriptor(), true)) return to_.close();
      if (items[1].revents != 0 && !pass(to_.descriptor(), from.get(), false)) return to_.close();
    }
  }

  bool pass(int from, int to, bool there) {
    std::string bytes(65536, '\0');
    const ssize_t count = recv(from, bytes.data(), bytes.size(), 0);
    if (count <= 0) return false;
    bytes.resize(static_cast<std::size_t>(count));
    if (there) {
      through_(bytes);
      passed_ += bytes;
    }
    return send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }

  const Through through_;
  RawConnection to_;
  const FileDescriptor listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string address_;
  std::string passed_;
  std::jthread thread_;
};

class SealedSockets : public testing::Test, protected SocketMeeting {
 protected:
  SealedSockets() : SocketMeeting(true) {}

  // Endpoint 1, connected through the relay.
  std::unique_ptr<Transport> connect_through(const Relay& relay) {
    KnownAddresses known({relay.address(), ""});
    Result<std::unique_ptr<Transport>> peer =
        make_transport(TransportKind::kSockets, options_of(1, 2, true), known, soon());
    EXPECT_TRUE(peer.ok()) << peer.status().message();
    return peer.ok() ? std::move(*peer) : nullptr;
  }
};

TEST_F(SealedSockets, TurnAwayWhoWouldSpeakPlainly) {
  Hello says = hello();
  says.encrypts = 0;
  expect_rejected(bytes_of(says));
}

TEST_F(SealedSockets, ShowNothingOnTheWayAndCannotBeSaidAgain) {
  Relay relay(address(), [](std::string&) {});
  {
    const std::unique_ptr<Transport> peer = connect_through(relay);
    const std::unique_ptr<Transport> endpoint = listener();
    ASSERT_TRUE(peer && endpoint);
    const Result<std::span<std::byte>> memory = peer->allocate(50000);
    ASSERT_TRUE(memory.ok());
    std::ranges::fill(*memory, std::byte{'s'});
    ASSERT_TRUE(peer->send(0, "a header", *memory, nullptr, soon()).ok());
    const Result<Message> message = endpoint->receive(soon());
    ASSERT_TRUE(message.ok()) << message.status().message();
    EXPECT_TRUE(std::ranges::equal(message->payload(), *memory));
  }
  const std::string& passed = relay.passed();
  EXPECT_GT(passed.size(), 50000u);
  EXPECT_THAT(passed, Not(HasSubstr("a header")));
  EXPECT_THAT(passed, Not(HasSubstr("ssssssss")));

  SocketMeeting another(true);
  RawConnection intruder(another.address());
  intruder.say(passed);
  intruder.hear(1000);
  EXPECT_TRUE(intruder.is_cut_off());
  another.expect_peer_is_heard(1);
}

TEST_F(SealedSockets, EndAConnectionInWhichSomethingWasChanged) {
  std::atomic<bool> changes{false};
  Relay relay(address(), [&](std::string& bytes) {
    if (changes.load()) bytes.back() ^= 1;
  });
  const std::unique_ptr<Transport> peer = connect_through(relay);
  const std::unique_ptr<Transport> endpoint = listener();
  ASSERT_TRUE(peer && endpoint);
  ASSERT_TRUE(peer->send(0, "as it was", {}, nullptr, soon()).ok());
  EXPECT_TRUE(endpoint->receive(soon()).ok());
  changes.store(true);
  ASSERT_TRUE(peer->send(0, "changed", {}, nullptr, soon()).ok());
  EXPECT_EQ(endpoint->receive(soon()).status().code(), Code::kPeerLost);
}

TEST_F(SealedSockets, TurnAwayWhatWasChangedInAHello) {
  // From the faster cipher to the slower: both ends would go on, if they did not notice.
  Relay relay(address(), [first = true](std::string& bytes) mutable {
    const auto slower = static_cast<std::uint32_t>(SocketCipher::Kind::kChaCha20Poly1305);
    if (first) std::memcpy(bytes.data() + offsetof(Hello, cipher), &slower, sizeof(slower));
    first = false;
  });
  if (SocketCipher::best() == SocketCipher::Kind::kChaCha20Poly1305) GTEST_SKIP() << "there is no slower one";
  KnownAddresses known({relay.address(), ""});
  EXPECT_EQ(make_transport(TransportKind::kSockets, options_of(1, 2, true), known, soon()).status().code(),
            Code::kPeerLost);
  (void)relay.passed();  // the other end of the relay is closed too
  expect_peer_is_heard(1);
}

}  // namespace
}  // namespace syncopate
