#include "ps/policy/push_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <random>

namespace syncopate::ps {
namespace {

using PushedChunk = PushScheduler::Chunk;
using Order = PushScheduler::Order;

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max() / 2;

// The indices of all chunks that may go now.
std::vector<std::size_t> drain(PushScheduler& scheduler) {
  std::vector<std::size_t> indices;
  while (const std::optional<PushedChunk> chunk = scheduler.next()) indices.push_back(chunk->index);
  return indices;
}

using Indices = std::vector<std::size_t>;

TEST(PushScheduler, HasNothingToSendAtFirst) {
  PushScheduler scheduler(Order::kPriority, 2, 100);
  EXPECT_FALSE(scheduler.next().has_value());
  EXPECT_TRUE(scheduler.empty());
  EXPECT_TRUE(scheduler.idle());
}

TEST(PushScheduler, SendsInOrderOfArrivalUnderFifo) {
  PushScheduler scheduler(Order::kFifo, 2, kNoLimit);
  scheduler.ready({.link = 1, .bytes = 4, .priority = 9, .index = 0});
  scheduler.ready({.link = 0, .bytes = 4, .priority = 1, .index = 1});
  scheduler.ready({.link = 1, .bytes = 4, .priority = 0, .index = 2});
  scheduler.ready({.link = 0, .bytes = 4, .priority = 5, .index = 3});
  EXPECT_EQ(drain(scheduler), Indices({0, 1, 2, 3}));
}

TEST(PushScheduler, SendsTheMostUrgentFirstAndEqualsInOrderOfArrival) {
  PushScheduler scheduler(Order::kPriority, 2, kNoLimit);
  scheduler.ready({.link = 1, .bytes = 4, .priority = 9, .index = 0});
  scheduler.ready({.link = 0, .bytes = 4, .priority = 1, .index = 1});
  scheduler.ready({.link = 1, .bytes = 4, .priority = -1, .index = 2});
  scheduler.ready({.link = 1, .bytes = 4, .priority = 1, .index = 3});
  scheduler.ready({.link = 0, .bytes = 4, .priority = 1, .index = 4});
  EXPECT_EQ(drain(scheduler), Indices({2, 1, 3, 4, 0}));
}

TEST(PushScheduler, SendsNoMoreThanTheCreditUntilItIsAnswered) {
  PushScheduler scheduler(Order::kFifo, 1, 10);
  for (std::size_t i = 0; i < 4; ++i) scheduler.ready({.bytes = 4, .index = i});
  EXPECT_EQ(drain(scheduler), Indices({0, 1}));
  EXPECT_EQ(scheduler.outstanding_bytes(0), 8u);
  scheduler.done(0, 4);
  EXPECT_EQ(drain(scheduler), Indices({2}));
  EXPECT_FALSE(scheduler.empty());
  scheduler.done(0, 4);
  EXPECT_EQ(drain(scheduler), Indices({3}));
  EXPECT_TRUE(scheduler.empty());
  EXPECT_FALSE(scheduler.idle());
  scheduler.done(0, 4);
  scheduler.done(0, 4);
  EXPECT_TRUE(scheduler.idle());
}

TEST(PushScheduler, SendsAChunkLargerThanTheCreditAlone) {
  PushScheduler scheduler(Order::kFifo, 1, 10);
  scheduler.ready({.bytes = 4, .index = 0});
  scheduler.ready({.bytes = 11, .index = 1});
  scheduler.ready({.bytes = 4, .index = 2});
  EXPECT_EQ(drain(scheduler), Indices({0}));
  scheduler.done(0, 4);
  EXPECT_EQ(drain(scheduler), Indices({1})) << "and none behind it, small as it may be";
  scheduler.done(0, 11);
  EXPECT_EQ(drain(scheduler), Indices({2}));
}

TEST(PushScheduler, LetsAFullLinkHoldNoOtherBack) {
  for (const Order order : {Order::kFifo, Order::kPriority}) {
    PushScheduler scheduler(order, 2, 4);
    scheduler.ready({.link = 0, .bytes = 4, .index = 0});
    scheduler.ready({.link = 0, .bytes = 4, .index = 1});
    scheduler.ready({.link = 1, .bytes = 4, .priority = 3, .index = 2});
    EXPECT_EQ(drain(scheduler), Indices({0, 2}));
  }
}

// The toy of the documentation of BytePS: three layers, whose backward and forward passes take 2 units each, and whose
// tensors take 3, 6 and 3 units to push, and as many to pull. Push and pull are full duplex; a chunk's pull follows its
// whole push. One byte takes one unit of time.
class Toy {
 public:
  Toy(Order order, std::size_t chunk_bytes, std::size_t credit)
      : scheduler_(order, 1, credit), chunk_bytes_(chunk_bytes) {}

  // When the next forward pass has ended.
  int run() {
    for (int now = 0;; ++now) {
      if (now > 0 && now % kPass == 0 && now <= kLayers * kPass) backward_ended(kLayers - now / kPass);
      if (forward_ended(now)) return now;
      // What is handed to the wire leaves in that sequence: the scheduler has no second say.
      while (const std::optional<PushedChunk> chunk = scheduler_.next()) push_.line.push_back(*chunk);
      const std::optional<PushedChunk> pushed = push_.pass_one_unit();
      const std::optional<PushedChunk> pulled = pull_.pass_one_unit();
      if (pushed) pull_.line.push_back(*pushed);
      if (pulled) {
        scheduler_.done(0, pulled->bytes);
        missing_[pulled->index] -= pulled->bytes;
      }
    }
  }

 private:
  static constexpr int kLayers = 3;
  static constexpr int kPass = 2;
  static constexpr std::array<std::size_t, kLayers> kBytes{3, 6, 3};

  struct Direction {
    std::deque<PushedChunk> line;
    std::size_t passed = 0;  // bytes of the chunk in front

    // The chunk that has arrived with it, if one has.
    std::optional<PushedChunk> pass_one_unit() {
      if (line.empty() || ++passed < line.front().bytes) return std::nullopt;
      const PushedChunk arrived = line.front();
      line.pop_front();
      passed = 0;
      return arrived;
    }
  };

  void backward_ended(int layer) {
    const auto index = static_cast<std::size_t>(layer);
    for (std::size_t begin = 0; begin < kBytes[index]; begin += chunk_bytes_) {
      const std::size_t bytes = std::min(chunk_bytes_, kBytes[index] - begin);
      scheduler_.ready({.bytes = bytes, .priority = layer, .index = index});
    }
  }

  // A layer's forward pass begins once its weights are there and the layer before has ended. True when all have ended.
  bool forward_ended(int now) {
    if (now == layer_ends_) ++layer_;
    if (now >= layer_ends_ && layer_ < missing_.size() && missing_[layer_] == 0) layer_ends_ = now + kPass;
    return layer_ == missing_.size();
  }

  PushScheduler scheduler_;
  std::size_t chunk_bytes_;
  Direction push_, pull_;
  std::array<std::size_t, kLayers> missing_ = kBytes;  // bytes of new weights
  std::size_t layer_ = 0;                              // that runs forward, or waits for its weights
  int layer_ends_ = -1;
};

TEST(PushScheduler, TakesTheToyThrough26UnitsFirstInFirstOutAnd18WithPriority) {
  EXPECT_EQ(Toy(Order::kFifo, 6, kNoLimit).run(), 26);
  EXPECT_EQ(Toy(Order::kPriority, 1, 2).run(), 18);
}

TEST(PushScheduler, NeedsChunksAndAShortCreditForPriorityToPay) {
  EXPECT_EQ(Toy(Order::kFifo, 1, 2).run(), 21) << "chunks alone let push and pull overlap";
  EXPECT_EQ(Toy(Order::kPriority, 1, kNoLimit).run(), 21) << "what was handed to the wire cannot be overtaken";
  EXPECT_GT(Toy(Order::kPriority, 1, 1).run(), 18) << "push and pull cannot overlap in a credit of one chunk";
}

// Random arrivals and answers, against what the contract says of every single step.
class AnySchedule : public testing::TestWithParam<Order> {};

INSTANTIATE_TEST_SUITE_P(Of, AnySchedule, testing::Values(Order::kFifo, Order::kPriority),
                         [](const auto& order) { return order.param == Order::kFifo ? "Fifo" : "Priority"; });

TEST_P(AnySchedule, LosesNothingSendsNothingTwiceKeepsItsOrderAndTheCredit) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](std::size_t limit) { return static_cast<std::size_t>(random()) % limit; };
    const std::size_t links = 1 + below(4), credit = 1 + below(40), chunks = 100;
    PushScheduler scheduler(GetParam(), links, credit);
    std::vector<PushedChunk> waiting, sent;  // by arrival
    std::vector<int> times_sent(chunks, 0);
    const auto goes_before = [](const PushedChunk& a, const PushedChunk& b) {
      return GetParam() == Order::kPriority && a.priority != b.priority ? a.priority < b.priority : a.index < b.index;
    };
    const auto next_of = [&](std::size_t link) -> std::optional<PushedChunk> {
      std::optional<PushedChunk> first;
      for (const PushedChunk& chunk : waiting) {
        if (chunk.link == link && (!first || goes_before(chunk, *first))) first = chunk;
      }
      return first;
    };
    for (std::size_t arrived = 0; arrived < chunks || !scheduler.idle();) {
      ASSERT_EQ(scheduler.empty(), waiting.empty());
      const std::size_t what = below(3);
      if (what == 0 && arrived < chunks) {
        const PushedChunk chunk{below(links), 1 + below(50), static_cast<std::int64_t>(below(5)), arrived++};
        scheduler.ready(chunk);
        waiting.push_back(chunk);
      } else if (what == 1 && !sent.empty()) {
        const auto answered = sent.begin() + static_cast<std::ptrdiff_t>(below(sent.size()));
        scheduler.done(answered->link, answered->bytes);
        sent.erase(answered);
      } else if (what == 2) {
        std::optional<PushedChunk> expected;
        for (std::size_t link = 0; link < links; ++link) {
          std::size_t outstanding = 0;
          for (const PushedChunk& chunk : sent) outstanding += chunk.link == link ? chunk.bytes : 0;
          ASSERT_EQ(scheduler.outstanding_bytes(link), outstanding);
          const std::optional<PushedChunk> head = next_of(link);
          const bool may_go = head && (outstanding == 0 || outstanding + head->bytes <= credit);
          if (may_go && (!expected || goes_before(*head, *expected))) expected = head;
        }
        const std::optional<PushedChunk> chunk = scheduler.next();
        ASSERT_EQ(chunk.has_value(), expected.has_value());
        if (!chunk) continue;
        ASSERT_EQ(chunk->index, expected->index);
        ASSERT_EQ(chunk->bytes, expected->bytes);
        ++times_sent[chunk->index];
        std::erase_if(waiting, [&](const PushedChunk& other) { return other.index == chunk->index; });
        sent.push_back(*chunk);
      }
    }
    EXPECT_EQ(times_sent, std::vector<int>(chunks, 1)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace syncopate::ps
