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

TEST(FaultyTransport, MakesOfARunsFaultsWhatLastsNow) {
  const TimePoint now = SteadyClock().now(), later = now + std::chrono::seconds(1);
  LinkFaults faults;
  EXPECT_EQ(delays_and_duplicates(faults, now).delay + delays_and_duplicates(faults, now).duplicate, 0);
  EXPECT_EQ(reordering(faults, now).delay, 0);
  faults.begin(LinkFault::kDelay, later);
  EXPECT_GT(delays_and_duplicates(faults, now).delay, 0);
  EXPECT_EQ(delays_and_duplicates(faults, now).duplicate, 0);
  EXPECT_EQ(reordering(faults, now).delay, 0);
  faults.begin(LinkFault::kDuplicate, later);
  faults.begin(LinkFault::kReorder, later);
  EXPECT_EQ(delays_and_duplicates(faults, now).duplicate, 1);
  EXPECT_FALSE(delays_and_duplicates(faults, now).overtakes);
  EXPECT_GT(reordering(faults, now).delay, 0);
  EXPECT_TRUE(reordering(faults, now).overtakes);
  EXPECT_EQ(delays_and_duplicates(faults, later).delay + delays_and_duplicates(faults, later).duplicate, 0);
  EXPECT_EQ(reordering(faults, later).delay, 0);
}

TEST(FaultyTransport, MisbehavesAsItsPlanSaysAtEachTime) {
  auto group = connect_group("inproc", 2);
  double duplicate = 1;
  FaultyTransport sender(
      std::move(group[0]), [&](TimePoint) { return FaultPlan{.duplicate = duplicate}; }, 1);
  ASSERT_TRUE(sender.send(1, "twice", {}, nullptr, soon()).ok());
  duplicate = 0;
  ASSERT_TRUE(sender.send(1, "once", {}, nullptr, soon()).ok());
  for (const char* text : {"twice", "twice", "once"}) {
    Result<Message> message = group[1]->receive(soon());
    ASSERT_TRUE(message.ok());
    EXPECT_EQ(message->header(), text);
  }
}

TEST(FaultyTransport, LetsNoMoreThanSoManyOvertake) {
  auto group = connect_group("inproc", 2);
  double delay = 1;
  const auto plan = [&](TimePoint) {
    return FaultPlan{.delay = delay, .delayed_by = std::chrono::hours(1), .overtakes = true};
  };
  FaultyTransport sender(std::move(group[0]), plan, 1);
  ASSERT_TRUE(sender.send(1, "overtaken", {}, nullptr, soon()).ok());
  delay = 0;
  for (int i = 0; i <= FaultPlan::kMostOvertaking; ++i) ASSERT_TRUE(sender.send(1, "", {}, nullptr, soon()).ok());
  for (int i = 0; i <= FaultPlan::kMostOvertaking; ++i) {
    Result<Message> message = group[1]->receive(soon());
    ASSERT_TRUE(message.ok());
    EXPECT_EQ(message->header(), i == FaultPlan::kMostOvertaking ? "overtaken" : "");
  }
}

// The second of two is a copy: a payload is let go of as soon as the first has been read.
TEST(FaultyTransport, HasNobodyWaitForTheSecondOfTwo) {
  auto group = connect_group("shm", 2);
  FaultyTransport sender(std::move(group[0]), {.duplicate = 1.0});
  const Result<std::span<std::byte>> memory = sender.allocate(64);
  ASSERT_TRUE(memory.ok());
  PendingSends pending;
  ASSERT_TRUE(sender.send(1, "", *memory, &pending, soon()).ok());
  ASSERT_TRUE(group[1]->receive(soon()).ok());
  EXPECT_TRUE(sender.wait(pending, soon()).ok());
  std::ranges::fill(*memory, std::byte{7});
  Result<Message> second = group[1]->receive(soon());
  ASSERT_TRUE(second.ok());
  ASSERT_EQ(second->payload().size(), 64u);
  EXPECT_EQ(second->payload()[0], std::byte{0});
}

TEST(FaultyTransport, SendsWhatIsHeldBackWhenItEnds) {
  auto group = connect_group("inproc", 2);
  auto sender = std::make_unique<FaultyTransport>(std::move(group[0]),
                                                  FaultPlan{.delay = 1.0, .delayed_by = std::chrono::hours(1)});
  ASSERT_TRUE(sender->send(1, "last words", {}, nullptr, soon()).ok());
  sender.reset();
  Result<Message> message = group[1]->receive(soon());
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->header(), "last words");
}

// A peer that reads late has room for so many messages: what finds none stays held back, in its place.
TEST(FaultyTransport, KeepsInOrderWhatFindsNoRoom) {
  auto group = connect_group("shm", 2);
  FaultyTransport sender(std::move(group[0]), {.delay = 1.0, .delayed_by = std::chrono::milliseconds(1)});
  constexpr int kMessages = 300;
  for (int i = 0; i < kMessages; ++i) ASSERT_TRUE(sender.send(1, std::to_string(i), {}, nullptr, soon()).ok());
  for (int i = 0; i < kMessages; ++i) {
    const TimePoint give_up = soon();
    Result<Message> message = group[1]->receive(SteadyClock().now());
    while (!message.ok() && SteadyClock().now() < give_up) {
      sender.progress();
      message = group[1]->receive(shortly());
    }
    ASSERT_TRUE(message.ok()) << i;
    EXPECT_EQ(message->header(), std::to_string(i));
  }
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
