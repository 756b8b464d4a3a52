#include "common/transport/shaped_transport.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <thread>

#include "common/transport/inproc_transport.h"
#include "tests/support/cluster.h"

namespace syncopate {
namespace {

using testing_support::connect_group;
using testing_support::run_ranks;
using testing_support::soon;
using Group = std::vector<std::unique_ptr<Transport>>;

// One link a rank.
Group connect_behind_links(const std::string& wire, const LinkShape& shape, int size) {
  Group group = connect_group(wire, size);
  for (auto& endpoint : group) {
    endpoint = std::make_unique<ShapedTransport>(std::move(endpoint), std::make_shared<ProcessLink>(shape));
  }
  return group;
}

std::span<std::byte> memory_of(Transport& endpoint, std::size_t bytes) {
  Result<std::span<std::byte>> memory = endpoint.allocate(bytes);
  EXPECT_TRUE(memory.ok());
  return *memory;
}

Duration time_to_receive(Transport& endpoint, int messages, TimePoint since) {
  for (int i = 0; i < messages; ++i) EXPECT_TRUE(endpoint.receive(soon()).ok());
  return SteadyClock().now() - since;
}

// A machine that is busy may be late; it is never early. How late is a matter of the ratio.
void expect_about(Duration time, Duration expected) {
  EXPECT_GE(time, expected);
  EXPECT_LT(time, 3 * expected);
}

constexpr std::size_t kMessage = 100000;

class ShapedTransportOverEveryWire : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Wire, ShapedTransportOverEveryWire, testing::Values("inproc", "shm", "ipc", "tcp", "sockets"),
                         [](const auto& wire) { return wire.param; });

TEST_P(ShapedTransportOverEveryWire, CarriesMessagesAsFastAsTheLink) {
  const LinkShape shape = *LinkShape::parse("100mbit");
  Group group = connect_behind_links(GetParam(), shape, 2);
  const std::span<std::byte> memory = memory_of(*group[0], kMessage);
  const TimePoint begin = SteadyClock().now();
  PendingSends pending;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(group[0]->send(1, "x", memory, &pending, soon()).ok());
  expect_about(time_to_receive(*group[1], 20, begin), 20 * shape.time_of(kMessage + 1));
  EXPECT_TRUE(group[0]->wait(pending, soon()).ok());
}

TEST(ShapedTransport, DoesNotHoldUpTheSender) {
  Group group = connect_behind_links("inproc", *LinkShape::parse("1mbit"), 2);
  const std::span<std::byte> memory = memory_of(*group[0], kMessage);
  const TimePoint begin = SteadyClock().now();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(group[0]->send(1, "x", memory, nullptr, soon()).ok());
  EXPECT_LT(SteadyClock().now() - begin, std::chrono::seconds(10)) << "they need 85 s to leave";
  EXPECT_EQ(group[1]->receive(SteadyClock().now()).status().code(), Code::kDeadlineExceeded);
}

TEST(ShapedTransport, AddsTheDelayOnceToMessagesThatFollowEachOther) {
  const LinkShape shape = *LinkShape::parse("1gbit+40ms");
  Group group = connect_behind_links("inproc", shape, 2);
  const TimePoint begin = SteadyClock().now();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(group[0]->send(1, "x", {}, nullptr, soon()).ok());
  expect_about(time_to_receive(*group[1], 50, begin), shape.delay + 50 * shape.time_of(1));
}

TEST(ShapedTransport, SharesTheReceiversLinkAmongItsSenders) {
  const LinkShape shape = *LinkShape::parse("100mbit");
  Group group = connect_behind_links("inproc", shape, 4);
  const TimePoint begin = SteadyClock().now();
  for (int sender = 1; sender < 4; ++sender) {
    Transport& self = *group[static_cast<std::size_t>(sender)];
    ASSERT_TRUE(self.send(0, "x", memory_of(self, 5 * kMessage), nullptr, soon()).ok());
  }
  expect_about(time_to_receive(*group[0], 3, begin), 3 * shape.time_of(5 * kMessage + 1));
}

TEST(ShapedTransport, SendsAndReceivesAtTheSameTime) {
  const LinkShape shape = *LinkShape::parse("100mbit");
  Group group = connect_behind_links("inproc", shape, 2);
  const TimePoint begin = SteadyClock().now();
  for (int rank = 0; rank < 2; ++rank) {
    Transport& self = *group[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(self.send(1 - rank, "x", memory_of(self, 10 * kMessage), nullptr, soon()).ok());
  }
  const Duration one = shape.time_of(10 * kMessage + 1);
  run_ranks(2, [&](int rank) {
    const Duration time = time_to_receive(*group[static_cast<std::size_t>(rank)], 1, begin);
    EXPECT_GE(time, one);
    EXPECT_LT(time, one + one / 2) << "half duplex would take twice as long";
  });
}

// Ranks 0 and 1 are one process. Their messages would take 8 s over the link.
TEST(ShapedTransport, CarriesWhatStaysInAProcessOverNoLink) {
  const LinkShape shape = *LinkShape::parse("1mbit");
  Group group = connect_group("inproc", 3);
  const auto link = std::make_shared<ProcessLink>(shape);
  group[0] = std::make_unique<ShapedTransport>(std::move(group[0]), link, std::vector<int>{1});
  group[1] = std::make_unique<ShapedTransport>(std::move(group[1]), link, std::vector<int>{0});
  group[2] = std::make_unique<ShapedTransport>(std::move(group[2]), std::make_shared<ProcessLink>(shape));
  const TimePoint begin = SteadyClock().now();
  for (const int rank : {0, 1}) {
    Transport& self = *group[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(self.send(1 - rank, "in", memory_of(self, 10 * kMessage), nullptr, soon()).ok());
  }
  ASSERT_TRUE(group[0]->send(2, "out", memory_of(*group[0], kMessage / 10), nullptr, soon()).ok());
  for (const int rank : {0, 1}) {
    const Result<Message> message = group[static_cast<std::size_t>(rank)]->receive(soon());
    ASSERT_TRUE(message.ok());
    EXPECT_EQ(message->header(), "in");
    EXPECT_EQ(message->payload().size(), 10 * kMessage);
  }
  EXPECT_LT(SteadyClock().now() - begin, std::chrono::seconds(4));
  EXPECT_TRUE(group[2]->receive(soon()).ok());
  EXPECT_GE(SteadyClock().now() - begin, shape.time_of(kMessage / 10 + 3));
  EXPECT_LT(SteadyClock().now() - begin, std::chrono::seconds(4)) << "it waits for nothing that stays inside";
  EXPECT_EQ(group[0]->counters().dropped + group[1]->counters().dropped, 0);
}

TEST(ShapedTransport, SharesOneLinkAmongAProcesssEndpoints) {
  const LinkShape shape = *LinkShape::parse("100mbit");
  Group group = connect_group("inproc", 3);
  const auto server = std::make_shared<ProcessLink>(shape);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const auto link = rank == 0 ? std::make_shared<ProcessLink>(shape) : server;
    group[rank] = std::make_unique<ShapedTransport>(std::move(group[rank]), link);
  }
  const TimePoint begin = SteadyClock().now();
  for (std::size_t shard = 1; shard < 3; ++shard) {
    ASSERT_TRUE(group[shard]->send(0, "x", memory_of(*group[shard], 10 * kMessage), nullptr, soon()).ok());
  }
  expect_about(time_to_receive(*group[0], 2, begin), 2 * shape.time_of(10 * kMessage + 1));
}

// The first message is alone on its sender's link when it is sent, and no longer when the second is.
TEST(ShapedTransport, SharesTheSendersLinkAmongItsPeers) {
  const LinkShape shape = *LinkShape::parse("100mbit");
  Group group = connect_behind_links("inproc", shape, 3);
  const std::span<std::byte> memory = memory_of(*group[0], 10 * kMessage);
  const TimePoint first = SteadyClock().now();
  ASSERT_TRUE(group[0]->send(1, "x", memory, nullptr, soon()).ok());
  ASSERT_TRUE(group[0]->send(2, "x", memory, nullptr, soon()).ok());
  const Duration between = SteadyClock().now() - first, one = shape.time_of(10 * kMessage + 1);
  EXPECT_GE(time_to_receive(*group[1], 1, first), std::max(one, 2 * one - between));
  expect_about(time_to_receive(*group[2], 1, first), 2 * one);
}

// An endpoint is told nothing by the others of its process: it looks, in its own calls and while it waits.
TEST(ShapedTransport, LearnsWhatOtherEndpointsOfItsProcessHaveSent) {
  const LinkShape shape = *LinkShape::parse("100mbit");
  for (const bool waits : {false, true}) {
    Group group = connect_group("inproc", 4);
    const auto server = std::make_shared<ProcessLink>(shape);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const auto link = rank < 2 ? std::make_shared<ProcessLink>(shape) : server;
      group[rank] = std::make_unique<ShapedTransport>(std::move(group[rank]), link);
    }
    const Duration one = shape.time_of(40 * kMessage + 1);
    const TimePoint first = SteadyClock().now();
    ASSERT_TRUE(group[2]->send(0, "x", memory_of(*group[2], 40 * kMessage), nullptr, soon()).ok());
    std::jthread waiter;
    if (waits) waiter = std::jthread([&] { (void)group[2]->receive(first + 2 * one); });
    ASSERT_TRUE(group[3]->send(1, "x", memory_of(*group[3], 40 * kMessage), nullptr, soon()).ok());
    const Duration between = SteadyClock().now() - first;
    if (!waits) EXPECT_EQ(group[2]->receive(SteadyClock().now()).status().code(), Code::kDeadlineExceeded);
    EXPECT_GE(time_to_receive(*group[0], 1, first), std::max(one, 2 * one - between)) << waits;
  }
}

// A revision has no place in the inbox of a peer that holds all it can: whoever sends to another one does not wait.
TEST(ShapedTransport, DoesNotWaitForAPeerThatCannotBeTold) {
  const LinkShape shape = *LinkShape::parse("100mbit");
  Group group = connect_behind_links("shm", shape, 3);
  const std::span<std::byte> memory = memory_of(*group[0], kMessage);
  const TimePoint begin = SteadyClock().now();
  constexpr int kSlots = 64;
  for (int i = 0; i < kSlots; ++i) ASSERT_TRUE(group[0]->send(1, "x", memory, nullptr, soon()).ok());
  ASSERT_TRUE(group[0]->send(2, "x", memory, nullptr, SteadyClock().now() + std::chrono::milliseconds(1)).ok());
  EXPECT_LT(SteadyClock().now() - begin, std::chrono::seconds(10)) << "nobody takes a message out";
  EXPECT_EQ(group[1]->receive(SteadyClock().now()).status().code(), Code::kDeadlineExceeded);
  // Held messages still have their places. The first one frees its own, and the sender tells in its next call.
  expect_about(time_to_receive(*group[1], 1, begin), shape.time_of(kMessage + 1));
  EXPECT_EQ(group[0]->receive(SteadyClock().now()).status().code(), Code::kDeadlineExceeded);
  expect_about(time_to_receive(*group[1], kSlots - 1, begin), (kSlots + 1) * shape.time_of(kMessage + 1));
}

TEST(ShapedTransport, DeliversARepeatedMessageTwice) {
  Group group = connect_group("inproc", 2);
  ShapedTransport receiver(std::move(group[1]), std::make_shared<ProcessLink>(*LinkShape::parse("1gbit")));
  const std::int64_t now = SteadyClock().now().time_since_epoch().count();
  const std::array<std::int64_t, 2> stamp = {now, now + 1000};
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(group[0]->send(1, in_envelope(stamp, "x"), {}, nullptr, soon()).ok());
  time_to_receive(receiver, 2, SteadyClock().now());
  EXPECT_EQ(receiver.counters().dropped, 0);
}

// All three are there when the receiver comes: both senders have half of its link until the one has sent all.
TEST(ShapedTransport, DeliversInTheOrderOfLastBytesWhenItComesLate) {
  Group group = connect_behind_links("inproc", *LinkShape::parse("10mbit"), 3);
  const std::span<std::byte> memory = memory_of(*group[1], kMessage);
  for (const char* header : {"first", "second"}) ASSERT_TRUE(group[1]->send(0, header, memory, nullptr, soon()).ok());
  ASSERT_TRUE(group[2]->send(0, "between", memory_of(*group[2], kMessage), nullptr, soon()).ok());
  for (const char* header : {"first", "between", "second"}) {
    const Result<Message> message = group[0]->receive(soon());
    ASSERT_TRUE(message.ok());
    EXPECT_EQ(message->header(), header);
  }
}

TEST(ShapedTransport, TellsOfALossBehindAllThatWasStillOnItsWay) {
  Group group = connect_behind_links("inproc", *LinkShape::parse("10mbit+20ms"), 2);
  const std::span<std::byte> memory = memory_of(*group[0], kMessage);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(group[0]->send(1, std::to_string(i), memory, nullptr, soon()).ok());
  group[0].reset();
  for (int i = 0; i < 3; ++i) {
    const Result<Message> message = group[1]->receive(soon());
    ASSERT_TRUE(message.ok()) << message.status().message();
    EXPECT_EQ(message->header(), std::to_string(i));
  }
  EXPECT_EQ(group[1]->receive(soon()).status().code(), Code::kPeerLost);
}

TEST(ShapedTransport, DropsAndCountsWhatHasNoStamp) {
  Group group = connect_group("inproc", 2);
  ShapedTransport receiver(std::move(group[1]), std::make_shared<ProcessLink>(*LinkShape::parse("1gbit")));
  const auto revision = [](const std::vector<std::int64_t>& remainders) {
    return in_envelope(std::array<std::int64_t, 2>{0, -1},
                       {reinterpret_cast<const char*>(remainders.data()), remainders.size() * sizeof(std::int64_t)});
  };
  const std::int64_t ever = std::numeric_limits<std::int64_t>::max();
  const std::string wrong[] = {"short",
                               std::string(20, '\x7f'),
                               std::string(20, '\xff'),
                               revision({}),
                               revision({1, 0}),
                               revision({1, 5, 2}),
                               revision({1, 5, 2, 1}),
                               revision({2, 5, 1, 0}),
                               revision({1, 5, 2, 6, 3, 0}),
                               revision({-1, 5, 2, 0}),
                               revision({1, 5, ever, 0}),
                               revision({1, ever, 2, 0})};
  for (const std::string& header : wrong) ASSERT_TRUE(group[0]->send(1, header, {}, nullptr, soon()).ok());
  const TimePoint shortly = SteadyClock().now() + std::chrono::milliseconds(20);
  EXPECT_EQ(receiver.receive(shortly).status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(receiver.counters().dropped, static_cast<std::int64_t>(std::size(wrong)));
}

TEST(ShapedTransport, TakesHeadersOfEverySize) {
  Group group = connect_behind_links("shm", *LinkShape::parse("1gbit"), 2);
  const std::string longest(kMaxHeaderBytes, 'h');
  for (const std::string& header : {std::string(), longest}) {
    ASSERT_TRUE(group[0]->send(1, header, {}, nullptr, soon()).ok());
    const Result<Message> message = group[1]->receive(soon());
    ASSERT_TRUE(message.ok());
    EXPECT_EQ(message->header(), header);
  }
}

}  // namespace
}  // namespace syncopate
