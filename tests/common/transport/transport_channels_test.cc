#include "common/transport/transport_channels.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/cluster.h"

namespace syncopate {
namespace {

using testing_support::all_wires;
using testing_support::connect_group;
using testing_support::soon;

class TransportChannelsOverEveryWire : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Wire, TransportChannelsOverEveryWire, testing::ValuesIn(all_wires()),
                         [](const auto& wire) { return wire.param; });

// All of one thread, as a process may have it: what is small needs nobody on the other side.
TEST_P(TransportChannelsOverEveryWire, HandOverEachMessageToTheChannelThatItWasSentByAndKeepTheirOrder) {
  const auto endpoints = connect_group(GetParam(), 2);
  TransportChannels here(*endpoints[0], 2), there(*endpoints[1], 2);
  PendingSends pending;
  const Result<std::span<std::byte>> memory = here.channel(0).allocate(64);
  ASSERT_TRUE(memory.ok());
  std::memset(memory->data(), 7, memory->size());
  for (const int number : {1, 0, 1, 1, 0}) {
    const std::string header = "of " + std::to_string(number);
    ASSERT_TRUE(here.channel(number).send(1, header, *memory, &pending, soon()).ok());
  }
  for (const int number : {0, 1, 1, 0, 1}) {
    const Result<Message> message = there.channel(number).receive(soon());
    ASSERT_TRUE(message.ok()) << message.status().message();
    EXPECT_EQ(message->header(), "of " + std::to_string(number));
    EXPECT_EQ(message->from(), 0);
    ASSERT_EQ(message->payload().size(), 64u);
    EXPECT_EQ(message->payload()[63], std::byte(7));
  }
  EXPECT_TRUE(here.channel(1).wait(pending, soon()).ok());
}

TEST(TransportChannels, DropAndCountWhatIsOfNoneOfThem) {
  const auto endpoints = connect_group("inproc", 2);
  TransportChannels here(*endpoints[0], 3), there(*endpoints[1], 2);
  ASSERT_TRUE(here.channel(2).send(1, "lost", {}, nullptr, soon()).ok());
  ASSERT_TRUE(endpoints[0]->send(1, "", {}, nullptr, soon()).ok());
  ASSERT_TRUE(here.channel(1).send(1, "found", {}, nullptr, soon()).ok());
  const Result<Message> message = there.channel(1).receive(soon());
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->header(), "found");
  EXPECT_EQ(there.channel(0).counters().dropped, 2);
}

TEST(TransportChannels, RefuseAHeaderThatHasNoRoomForTheirNumberAndEndTheirWaitsTogether) {
  const auto endpoints = connect_group("inproc", 2);
  TransportChannels channels(*endpoints[0], 2);
  const std::string longest(kMaxHeaderBytes - 1, 'x');
  EXPECT_TRUE(channels.channel(0).send(1, longest, {}, nullptr, soon()).ok());
  EXPECT_EQ(channels.channel(0).send(1, longest + "x", {}, nullptr, soon()).code(), Code::kInvalidArgument);
  channels.channel(0).interrupt();
  EXPECT_EQ(channels.channel(1).receive(soon()).status().code(), Code::kCancelled);
}

}  // namespace
}  // namespace syncopate
