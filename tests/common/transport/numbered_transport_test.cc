#include "common/transport/numbered_transport.h"

#include <gtest/gtest.h>

#include "common/transport/faulty_transport.h"
#include "tests/support/cluster.h"

namespace syncopate {
namespace {

using testing_support::connect_group;
using testing_support::soon;

class NumberedTransportTest : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Over, NumberedTransportTest, testing::ValuesIn(testing_support::all_wires()),
                         [](const auto& wire) { return wire.param; });

// Two of three endpoints send to the third, which reads now and then.
TEST_P(NumberedTransportTest, KeepsTheOrderOfEachSenderOverAWireThatReordersAndRepeats) {
  const FaultPlan plan{.duplicate = 0.2, .delay = 0.3, .delayed_by = std::chrono::milliseconds(1), .overtakes = true};
  std::vector<std::unique_ptr<NumberedTransport>> group;
  for (auto& endpoint : connect_group(GetParam(), 3)) {
    group.push_back(std::make_unique<NumberedTransport>(std::make_unique<FaultyTransport>(std::move(endpoint), plan)));
  }
  constexpr int kMessages = 400;
  testing_support::run_ranks(3, [&](int rank) {
    NumberedTransport& own = *group[static_cast<std::size_t>(rank)];
    if (rank < 2) {
      const Result<std::span<std::byte>> memory = own.allocate(64);
      ASSERT_TRUE(memory.ok());
      for (int i = 0; i < kMessages; ++i) {
        PendingSends pending;
        ASSERT_TRUE(
            own.send(2, std::to_string(i), i % 3 == 0 ? *memory : std::span<std::byte>(), &pending, soon()).ok());
        if (i % 50 == 49) {
          ASSERT_TRUE(own.wait(pending, soon()).ok());
        }
      }
      ASSERT_TRUE(own.receive(soon()).ok());  // all has come
      return;
    }
    int next[2] = {0, 0};
    while (next[0] < kMessages || next[1] < kMessages) {
      Result<Message> message = own.receive(soon());
      ASSERT_TRUE(message.ok()) << message.status().message();
      int& due = next[message->from()];
      ASSERT_EQ(message->header(), std::to_string(due));
      ASSERT_EQ(message->payload().size(), due % 3 == 0 ? 64u : 0u);
      ++due;
    }
    EXPECT_GT(own.counters().dropped, 0);
    for (int sender : {0, 1}) ASSERT_TRUE(own.send(sender, "done", {}, nullptr, soon()).ok());
  });
}

TEST_P(NumberedTransportTest, DropsWhatHasNoNumber) {
  auto group = connect_group(GetParam(), 2);
  NumberedTransport receiver(std::move(group[0]));
  ASSERT_TRUE(group[1]->send(0, "short", {}, nullptr, soon()).ok());
  NumberedTransport sender(std::move(group[1]));
  ASSERT_TRUE(sender.send(0, "right", {}, nullptr, soon()).ok());
  Result<Message> message = receiver.receive(soon());
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->header(), "right");
  EXPECT_EQ(receiver.counters().dropped, 1);
}

}  // namespace
}  // namespace syncopate
