#include "allreduce/schedule.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>

#include "common/random.h"

namespace syncopate::allreduce {
namespace {

// All ranks' schedules, carried out without a network: messages wait in queues, and the rank that moves next is drawn,
// so that every order of delivery can come up. Buffers hold whole numbers, so sums are exact.
class Simulation {
 public:
  Simulation(std::vector<Schedule> schedules, std::vector<std::vector<double>> buffers, std::uint64_t seed)
      : schedules_(std::move(schedules)), buffers_(std::move(buffers)), random_(seed) {}

  // Returns whether all ranks came to their schedule's end.
  bool run() {
    const std::size_t size = schedules_.size();
    std::vector<std::size_t> step(size, 0);
    std::vector<bool> sent(size, false);
    sent_elements.assign(size, 0);
    while (true) {
      std::vector<std::size_t> movable;
      for (std::size_t rank = 0; rank < size; ++rank) {
        if (step[rank] < schedules_[rank].size() && can_move(rank, schedules_[rank][step[rank]], sent[rank])) {
          movable.push_back(rank);
        }
      }
      if (movable.empty()) break;
      const std::size_t rank = movable[random_.below(movable.size())];
      const ScheduleStep& now = schedules_[rank][step[rank]];
      if (now.send && !sent[rank]) {
        const Range range = now.send->range;
        wire_[{rank, static_cast<std::size_t>(now.send->peer)}].emplace_back(buffers_[rank].begin() + range.begin,
                                                                             buffers_[rank].begin() + range.end);
        sent_elements[rank] += range.size();
        sent[rank] = true;
        if (now.receive) continue;
      }
      if (now.receive) take(rank, *now.receive);
      ++step[rank];
      sent[rank] = false;
    }
    for (std::size_t rank = 0; rank < size; ++rank) finished += step[rank] == schedules_[rank].size() ? 1 : 0;
    if (finished != size) return false;
    for (const auto& [link, queue] : wire_) {
      if (!queue.empty()) return false;
    }
    return true;
  }

  const std::vector<std::vector<double>>& buffers() const { return buffers_; }
  std::vector<std::size_t> sent_elements;  // by rank
  std::size_t finished = 0;                // ranks that came to their schedule's end

 private:
  using Link = std::pair<std::size_t, std::size_t>;

  bool can_move(std::size_t rank, const ScheduleStep& step, bool sent) {
    if (step.send && !sent) return true;
    return !step.receive || !wire_[{static_cast<std::size_t>(step.receive->peer), rank}].empty();
  }

  void take(std::size_t rank, const ReceivePart& part) {
    std::deque<std::vector<double>>& queue = wire_[{static_cast<std::size_t>(part.peer), rank}];
    ASSERT_EQ(queue.front().size(), part.range.size());
    for (std::size_t i = 0; i < part.range.size(); ++i) {
      double& own = buffers_[rank][part.range.begin + i];
      own = part.then == ReceivePart::Then::kReduce ? own + queue.front()[i] : queue.front()[i];
    }
    queue.pop_front();
  }

  std::vector<Schedule> schedules_;
  std::vector<std::vector<double>> buffers_;
  std::map<Link, std::deque<std::vector<double>>> wire_;
  Random random_;
};

// Rank r's element i: a number that no other sum of ranks gives.
double element(int rank, std::size_t i) { return std::ldexp(1.0, rank) + static_cast<double>(i % 3); }

std::vector<std::vector<double>> distinct_buffers(int size, std::size_t length) {
  std::vector<std::vector<double>> buffers;
  for (int rank = 0; rank < size; ++rank) {
    buffers.emplace_back();
    for (std::size_t i = 0; i < length; ++i) buffers.back().push_back(element(rank, i));
  }
  return buffers;
}

std::vector<Schedule> for_all_ranks(int size, const std::function<Schedule(int)>& schedule) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < size; ++rank) schedules.push_back(schedule(rank));
  return schedules;
}

TEST(RingAllReduce, LeavesTheExactSumOnEveryRankUnderAnyOrderOfDelivery) {
  for (int size = 1; size <= 33; ++size) {
    for (std::size_t length : {0u, 1u, 16u, 17u, 100u, 1000u}) {
      Simulation ring(for_all_ranks(size, [&](int rank) { return ring_all_reduce(rank, size, length); }),
                      distinct_buffers(size, length), 100u * static_cast<unsigned>(size) + length);
      ASSERT_TRUE(ring.run()) << size << " ranks, " << length << " elements: no progress";
      for (std::size_t i = 0; i < length; ++i) {
        double sum = 0;
        for (int rank = 0; rank < size; ++rank) sum += element(rank, i);
        for (const auto& buffer : ring.buffers()) ASSERT_EQ(buffer[i], sum) << size << " ranks, element " << i;
      }
    }
  }
}

TEST(RingAllReduce, SendsTwiceTheBufferLessOneShareFromEveryRank) {
  for (int size : {2, 3, 4, 8, 16}) {
    const std::size_t length = static_cast<std::size_t>(size) * kAlignment * 5;
    Simulation ring(for_all_ranks(size, [&](int rank) { return ring_all_reduce(rank, size, length); }),
                    distinct_buffers(size, length), 7);
    ASSERT_TRUE(ring.run());
    const std::size_t theory = 2 * (static_cast<std::size_t>(size) - 1) * length / static_cast<std::size_t>(size);
    for (std::size_t sent : ring.sent_elements) EXPECT_EQ(sent, theory);
  }
}

TEST(BinomialBroadcast, GivesEveryRankTheRootsBufferInLogarithmicRounds) {
  for (int size = 1; size <= 33; ++size) {
    for (int root : {0, size - 1, size / 2}) {
      Simulation broadcast(for_all_ranks(size, [&](int rank) { return binomial_broadcast(rank, size, 10, root); }),
                           distinct_buffers(size, 10), static_cast<unsigned>(size));
      ASSERT_TRUE(broadcast.run());
      for (const auto& buffer : broadcast.buffers()) {
        for (std::size_t i = 0; i < 10; ++i) ASSERT_EQ(buffer[i], element(root, i));
      }
      EXPECT_LE(std::size_t{1} << (binomial_broadcast(root, size, 10, root).size()), 2u * static_cast<unsigned>(size));
    }
  }
}

TEST(DisseminationBarrier, LetsNobodyLeaveBeforeEverybodyHasEntered) {
  for (int size = 2; size <= 17; ++size) {
    for (int late = 0; late < size; ++late) {
      // The late rank never begins: then nobody may come to the end.
      std::vector<Schedule> schedules =
          for_all_ranks(size, [&](int rank) { return dissemination_barrier(rank, size); });
      ScheduleStep never;
      never.receive = ReceivePart{late, Range{0, 0}, ReceivePart::Then::kCopy};
      schedules[static_cast<std::size_t>(late)].insert(schedules[static_cast<std::size_t>(late)].begin(), never);
      Simulation barrier(schedules, distinct_buffers(size, 1), 1);
      EXPECT_FALSE(barrier.run());
      EXPECT_EQ(barrier.finished, 0u) << size << " ranks, late " << late;
    }
    Simulation barrier(for_all_ranks(size, [&](int rank) { return dissemination_barrier(rank, size); }),
                       distinct_buffers(size, 1), 1);
    EXPECT_TRUE(barrier.run());
  }
}

}  // namespace
}  // namespace syncopate::allreduce
