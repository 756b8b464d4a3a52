#include "common/transport/faulty_transport.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/cluster.h"

namespace syncopate {
namespace {

using testing_support::connect_group;
using testing_support::soon;

TimePoint shortly() { return SteadyClock().now() + std::chrono::milliseconds(30); }

// How often each of `count` messages, sent through a faulty endpoint, arrives.
std::vector<int> arrivals(FaultPlan plan, int count) {
  auto group = connect_group("inproc", 2);
  FaultyTransport sender(std::move(group[0]), plan);
  for (int i = 0; i < count; ++i) EXPECT_TRUE(sender.send(1, std::to_string(i), {}, nullptr, soon()).ok());
  std::vector<int> times(static_cast<std::size_t>(count), 0);
  const TimePoint end = SteadyClock().now() + 2 * plan.delayed_by;
  while (SteadyClock().now() < end) (void)sender.receive(end);  // gives held messages time to leave
  while (true) {
    Result<Message> message = group[1]->receive(shortly());
    if (!message.ok()) return times;
    ++times[static_cast<std::size_t>(std::stoi(message->header()))];
  }
}

TEST(FaultyTransport, DropsSomeMessagesAndTheSameOnesForTheSameSeed) {
  const std::vector<int> first = arrivals({.seed = 3, .drop = 0.3}, 200);
  EXPECT_GT(std::count(first.begin(), first.end(), 0), 30);
  EXPECT_GT(std::count(first.begin(), first.end(), 1), 100);
  EXPECT_EQ(first, arrivals({.seed = 3, .drop = 0.3}, 200));
}

TEST(FaultyTransport, DeliversDuplicatesTwice) {
  const std::vector<int> times = arrivals({.duplicate = 1.0}, 10);
  EXPECT_EQ(times, std::vector<int>(10, 2));
}

TEST(FaultyTransport, DeliversDelayedMessagesOnceAndLater) {
  const std::vector<int> times = arrivals({.delay = 0.5}, 50);
  EXPECT_EQ(times, std::vector<int>(50, 1));
}

// In which order `count` messages arrive, sent through a faulty endpoint to two peers in turns.
std::vector<std::vector<int>> orders(FaultPlan plan, int count) {
  auto group = connect_group("inproc", 3);
  FaultyTransport sender(std::move(group[0]), plan);
  for (int i = 0; i < count; ++i) EXPECT_TRUE(sender.send(1 + i % 2, std::to_string(i), {}, nullptr, soon()).ok());
  const TimePoint end = SteadyClock().now() + 2 * plan.delayed_by;
  while (SteadyClock().now() < end) (void)sender.receive(end);
  std::vector<std::vector<int>> orders(2);
  for (std::size_t peer : {0u, 1u}) {
    for (int i = 0; i < count / 2; ++i) {
      Result<Message> message = group[peer + 1]->receive(soon());
      if (!message.ok()) return orders;
      orders[peer].push_back(std::stoi(message->header()));
    }
  }
  return orders;
}

TEST(FaultyTransport, KeepsTheOrderOfMessagesToOnePeerUnlessTold) {
  for (const std::vector<int>& order : orders({.delay = 0.3}, 100)) {
    EXPECT_EQ(order.size(), 50u);
    EXPECT_TRUE(std::ranges::is_sorted(order));
  }
  for (const std::vector<int>& order : orders({.delay = 0.3, .overtakes = true}, 100)) {
    EXPECT_EQ(order.size(), 50u);
    EXPECT_FALSE(std::ranges::is_sorted(order));
  }
}

TEST(FaultyTransport, DeliversTheSecondOfTwoLate) {
  EXPECT_EQ(arrivals({.duplicate = 1.0, .delay = 0.5, .overtakes = true}, 50), std::vector<int>(50, 2));
}

TEST(FaultyTransport, CountsADelayedPayloadAsPendingUntilItIsReceived) {
  auto group = connect_group("inproc", 2);
  FaultyTransport sender(std::move(group[0]), {.delay = 1.0});
  PendingSends pending;
  Result<std::span<std::byte>> memory = sender.allocate(64);
  ASSERT_TRUE(memory.ok());
  ASSERT_TRUE(sender.send(1, "late", *memory, &pending, soon()).ok());
  EXPECT_FALSE(pending.none());
  EXPECT_EQ(sender.wait(pending, shortly()).code(), Code::kDeadlineExceeded);
  ASSERT_TRUE(group[1]->receive(soon()).ok());
  EXPECT_TRUE(sender.wait(pending, soon()).ok());
}

TEST(FaultyTransport, ACutLinkLosesMessagesInBothDirectionsUntilItIsMended) {
  auto group = connect_group("inproc", 2);
  FaultyTransport end(std::move(group[0]), {});
  end.cut(1);
  ASSERT_TRUE(end.send(1, "lost", {}, nullptr, soon()).ok());
  ASSERT_TRUE(group[1]->send(0, "lost too", {}, nullptr, soon()).ok());
  EXPECT_EQ(end.receive(shortly()).status().code(), Code::kDeadlineExceeded);
  end.mend(1);
  ASSERT_TRUE(end.send(1, "found", {}, nullptr, soon()).ok());
  Result<Message> message = group[1]->receive(soon());
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->header(), "found");
}

}  // namespace
}  // namespace syncopate
