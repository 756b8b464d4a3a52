// ZeroMQ's frames between hosts, with some left out, repeated, moved or changed on the way: what comes out is the
// beginning of what was sent. CURVE alone lets frames be left out.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/common/transport/socket_meeting.h"

namespace syncopate {
namespace {

using testing_support::KnownAddresses;
using testing_support::options_of;
using testing_support::RawConnection;
using testing_support::soon;

using Frames = std::vector<std::string>;
using Tamper = std::function<void(Frames&)>;

constexpr std::size_t kGreeting = 64;          // rfc.zeromq.org/spec/23
constexpr std::size_t kHandshakeCommands = 2;  // of who connects, by CURVE: hello and initiate

// The first frame of `bytes`, or nothing if it is not whole.
std::string first_frame(const std::string& bytes) {
  constexpr char kLong = 2;
  if (bytes.size() < 2) return {};
  const bool is_long = (bytes[0] & kLong) != 0;
  std::size_t size = 2 + static_cast<unsigned char>(bytes[1]);
  if (is_long) {
    if (bytes.size() < 9) return {};
    size = 0;
    for (std::size_t i = 1; i < 9; ++i) size = size << 8 | static_cast<unsigned char>(bytes[i]);
    size += 9;
  }
  return bytes.size() < size ? std::string() : bytes.substr(0, size);
}

// Stands between a sender and a receiver: lets their handshake pass, and then so many frames of the sender's at once,
// as they are after `tamper`.
class Proxy {
 public:
  Proxy() {
    sockaddr_in own{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(own);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&own), size), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&own), &size), 0);
    address_ = "tcp://127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  }

  const std::string& address() const { return address_; }

  // Returns when the receiver has closed the connection, or `gives_up` is true: ZeroMQ keeps one that it reads no more.
  void pass(const std::string& receiver_address, std::size_t count, const Tamper& tamper,
            const std::function<bool()>& gives_up) {
    const FileDescriptor sender(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    RawConnection receiver(receiver_address);
    std::string heard;
    std::size_t greeting = kGreeting, commands = kHandshakeCommands;
    Frames frames;
    while (frames.size() < count) {
      pollfd items[]{{sender.get(), POLLIN, 0}, {receiver.descriptor(), POLLIN, 0}};
      ASSERT_GT(poll(items, 2, 30'000), 0);
      if (items[1].revents != 0) say(sender.get(), hear(receiver.descriptor()));
      if (items[0].revents == 0) continue;
      heard += hear(sender.get());
      const std::string begin = heard.substr(0, greeting);
      heard.erase(0, begin.size());
      greeting -= begin.size();
      if (!begin.empty()) receiver.say(begin);
      for (std::string frame; !(frame = first_frame(heard)).empty(); heard.erase(0, frame.size())) {
        if (commands > 0) {
          --commands;
          receiver.say(frame);
        } else {
          frames.push_back(frame);
        }
      }
    }
    tamper(frames);
    const std::string rest = std::accumulate(frames.begin(), frames.end(), std::string());
    // The receiver may close it before it has heard all.
    (void)!send(receiver.descriptor(), rest.data(), rest.size(), MSG_NOSIGNAL);
    shutdown(receiver.descriptor(), SHUT_WR);
    pollfd end{receiver.descriptor(), POLLIN, 0};
    for (const TimePoint deadline = soon(); !gives_up() && SteadyClock().now() < deadline;) {
      if (poll(&end, 1, 1) > 0 && receiver.hear(1).empty()) break;
    }
  }

 private:
  static std::string hear(int socket) {
    std::string bytes(65536, '\0');
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(recv(socket, bytes.data(), bytes.size(), 0), 0)));
    return bytes;
  }
  static void say(int socket, const std::string& bytes) {
    EXPECT_EQ(send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  const FileDescriptor listener_{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string address_;
};

// Keeps what an endpoint tells.
class Noting final : public Rendezvous {
 public:
  Result<std::vector<std::string>> exchange(const std::string&, int, int, const std::string& value,
                                            TimePoint) override {
    told = value;
    return std::vector<std::string>{value, "nobody sends there"};
  }
  std::string told;
};

// Messages of the same size, so that a part of one would fit another, and one without a payload.
const std::vector<std::string> kSent{"first one", "", "the third", "last of it"};
constexpr std::size_t kFrames = 3 + 1 + 3 + 3;

// What a receiver makes of kSent behind such a proxy.
std::vector<std::string> received_behind(const Tamper& tamper) {
  Noting noting;
  const auto receiver = make_transport(TransportKind::kTcp, options_of(0, 2, true), noting, soon());
  EXPECT_TRUE(receiver.ok());
  Proxy proxy;
  KnownAddresses known({proxy.address(), "nobody sends there"});
  const auto sender = make_transport(TransportKind::kTcp, options_of(1, 2, true), known, soon());
  EXPECT_TRUE(sender.ok());
  for (const std::string& text : kSent) {
    EXPECT_TRUE((*sender)->send(0, "header", std::as_bytes(std::span(text)), nullptr, soon()).ok());
  }
  proxy.pass(noting.told.substr(noting.told.rfind('/') + 1), kFrames, tamper,
             [&] { return (*receiver)->counters().rejected > 0; });
  (*sender)->interrupt();
  std::vector<std::string> received;
  while (true) {
    const Result<Message> message = (*receiver)->receive(SteadyClock().now());
    if (!message.ok()) return received;
    EXPECT_EQ(message->header(), "header");
    EXPECT_EQ(message->from(), 1);
    received.emplace_back(reinterpret_cast<const char*>(message->payload().data()), message->payload().size());
  }
}

void expect_beginning(const Tamper& tamper) {
  const std::vector<std::string> received = received_behind(tamper);
  ASSERT_LE(received.size(), kSent.size());
  EXPECT_TRUE(std::equal(received.begin(), received.end(), kSent.begin()));
}

Tamper without(std::vector<std::size_t> left_out) {
  std::ranges::sort(left_out, std::greater());
  return [left_out](Frames& frames) {
    for (const std::size_t i : left_out) frames.erase(frames.begin() + static_cast<std::ptrdiff_t>(i));
  };
}

TEST(TamperedCurve, DeliversAllThatIsLeftAsItIs) {
  EXPECT_EQ(received_behind([](Frames&) {}), kSent);
}

TEST(TamperedCurve, LosesNoFrameUnnoticed) {
  for (std::size_t i = 0; i < kFrames; ++i) {
    for (std::size_t j = i; j < kFrames; ++j) {
      SCOPED_TRACE(testing::Message() << "without frames " << i << " and " << j);
      expect_beginning(i == j ? without({i}) : without({i, j}));
    }
  }
}

// As many as make one message of the parts of two.
TEST(TamperedCurve, MakesNoMessageOfTheFramesOfSeveral) {
  for (const std::vector<std::size_t>& run : {std::vector<std::size_t>{1, 2, 3, 4},
                                              {5, 6, 7},
                                              {1, 3, 4},
                                              {6, 7, 8},
                                              {5, 7, 9},
                                              {0, 3, 4},
                                              {1, 2, 3, 4, 5, 7},
                                              {1, 2, 3, 4, 5, 6, 7}}) {
    expect_beginning(without(run));
  }
}

TEST(TamperedCurve, RepeatsAndMovesNoFrame) {
  for (std::size_t i = 0; i < kFrames; ++i) {
    SCOPED_TRACE(testing::Message() << "frame " << i);
    expect_beginning(
        [i](Frames& frames) { frames.insert(frames.begin() + static_cast<std::ptrdiff_t>(i), frames[i]); });
    for (std::size_t j = 0; j < i; ++j) {
      expect_beginning([i, j](Frames& frames) { std::swap(frames[i], frames[j]); });
    }
  }
}

// One bit of each byte of the first message, and of every third behind.
TEST(TamperedCurve, DeliversNothingThatWasChanged) {
  std::size_t bytes = 0;
  received_behind([&](Frames& frames) {
    bytes = std::accumulate(frames.begin(), frames.end(), std::size_t{0},
                            [](std::size_t sum, const std::string& frame) { return sum + frame.size(); });
  });
  ASSERT_GT(bytes, 0u);
  for (std::size_t at = 0; at < bytes; at += at < 200 ? 1 : 3) {
    SCOPED_TRACE(testing::Message() << "byte " << at);
    expect_beginning([at](Frames& frames) {
      std::size_t left = at;
      auto frame = frames.begin();
      for (; left >= frame->size(); ++frame) left -= frame->size();
      (*frame)[left] = static_cast<char>((*frame)[left] ^ (1 << (at % 8)));
    });
  }
}

}  // namespace
}  // namespace syncopate
