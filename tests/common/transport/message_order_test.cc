#include "common/transport/message_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace syncopate {
namespace {

Message message(int from, std::uint64_t number) { return Message(from, std::to_string(number), {}, nullptr); }

// The headers of all that are due.
std::vector<std::string> take_all(MessageOrder& order) {
  std::vector<std::string> headers;
  while (const std::optional<Message> next = order.take()) headers.push_back(next->header());
  return headers;
}

using Headers = std::vector<std::string>;

TEST(MessageOrder, HasNothingAtFirst) {
  MessageOrder order(2);
  EXPECT_FALSE(order.take().has_value());
}

TEST(MessageOrder, HoldsBackWhatCameEarly) {
  MessageOrder order(1);
  EXPECT_TRUE(order.put(2, message(0, 2)));
  EXPECT_EQ(take_all(order), Headers());
  EXPECT_TRUE(order.put(1, message(0, 1)));
  EXPECT_EQ(take_all(order), Headers());
  EXPECT_TRUE(order.put(0, message(0, 0)));
  EXPECT_EQ(take_all(order), Headers({"0", "1", "2"}));
  EXPECT_TRUE(order.put(3, message(0, 3)));
  EXPECT_EQ(take_all(order), Headers({"3"}));
}

TEST(MessageOrder, TakesNoNumberTwice) {
  MessageOrder order(1);
  EXPECT_TRUE(order.put(0, message(0, 0)));
  EXPECT_EQ(take_all(order), Headers({"0"}));
  EXPECT_FALSE(order.put(0, message(0, 0))) << "it was taken";
  EXPECT_TRUE(order.put(2, message(0, 2)));
  EXPECT_FALSE(order.put(2, message(0, 2))) << "it waits";
  EXPECT_TRUE(order.put(1, message(0, 1)));
  EXPECT_EQ(take_all(order), Headers({"1", "2"}));
}

TEST(MessageOrder, KeepsOnlySoManyThatAreAhead) {
  constexpr std::uint64_t kMost = MessageOrder::kMostAhead;
  MessageOrder order(2);
  EXPECT_FALSE(order.put(kMost + 1, message(0, kMost + 1)));
  EXPECT_FALSE(order.put(~std::uint64_t{0}, message(0, 0)));
  for (std::uint64_t number = 1; number <= kMost; ++number) ASSERT_TRUE(order.put(number, message(0, number)));
  EXPECT_FALSE(order.put(kMost + 1, message(0, kMost + 1)));
  EXPECT_TRUE(order.put(1, message(1, 1))) << "each peer's are counted apart";
  EXPECT_TRUE(order.put(0, message(0, 0)));
  EXPECT_EQ(take_all(order).size(), kMost + 1);
}

TEST(MessageOrder, RestoresEveryOrderOfEveryPeer) {
  constexpr int kPeers = 3;
  constexpr std::uint64_t kMessages = 50;
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::pair<int, std::uint64_t>> arrivals;
    for (int peer = 0; peer < kPeers; ++peer) {
      for (std::uint64_t number = 0; number < kMessages; ++number) arrivals.emplace_back(peer, number);
    }
    std::ranges::shuffle(arrivals, random);
    MessageOrder order(kPeers);
    std::vector<std::uint64_t> next(kPeers, 0);
    for (const auto& [peer, number] : arrivals) {
      ASSERT_TRUE(order.put(number, message(peer, number)));
      while (const std::optional<Message> due = order.take()) {
        ASSERT_EQ(due->header(), std::to_string(next[static_cast<std::size_t>(due->from())]++));
      }
    }
    EXPECT_EQ(next, std::vector<std::uint64_t>(kPeers, kMessages)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace syncopate
