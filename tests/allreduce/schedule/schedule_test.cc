#include "allreduce/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <utility>

#include "allreduce/schedule/algorithms.h"
#include "tests/support/schedule_simulation.h"

namespace syncopate::allreduce {
namespace {

using testing_support::for_all_ranks;
using testing_support::ScheduleSimulation;
using testing_support::SimulatedWire;
using Buffers = std::vector<ScheduleSimulation::Buffer>;

constexpr SimulatedWire::Reads kBothReads[] = {SimulatedWire::Reads::kWhenSent, SimulatedWire::Reads::kWhenReceived};

// Rank r's element i: whole numbers, so that sums are exact, and such that no other choice of ranks has the same sum.
double whole(int rank, std::size_t i) { return std::ldexp(1.0, rank) + static_cast<double>(i % 3); }
// Numbers whose sum depends on the order of its terms.
double uneven(int rank, std::size_t i) {
  return std::ldexp(1.0 / (1.0 + static_cast<double>(i % 7)), (rank * 5 + static_cast<int>(i)) % 11);
}

Buffers buffers_of(int size, std::size_t length, double (*element)(int, std::size_t)) {
  Buffers buffers(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    for (std::size_t i = 0; i < length; ++i) buffers[static_cast<std::size_t>(rank)].push_back(element(rank, i));
  }
  return buffers;
}

std::vector<Schedule> all_reduces(ScheduleKind kind, int size, std::size_t length, std::size_t segment = 0) {
  return for_all_ranks(size, [&](int rank) { return all_reduce_schedule(kind, rank, size, length, segment); });
}

// The buffer in which all ranks end; the test fails if they do not, or in different ones.
ScheduleSimulation::Buffer agreed(const std::vector<Schedule>& schedules, Buffers buffers, const SimulatedWire& wire) {
  ScheduleSimulation simulation(schedules, std::move(buffers), wire);
  EXPECT_TRUE(simulation.run()) << "no progress, or not what was due";
  for (const auto& buffer : simulation.buffers()) EXPECT_EQ(buffer, simulation.buffers().front());
  return simulation.buffers().front();
}

class AllReduceSchedule : public testing::TestWithParam<ScheduleKind> {};

INSTANTIATE_TEST_SUITE_P(Kind, AllReduceSchedule, testing::ValuesIn(kAllScheduleKinds), [](const auto& kind) {
  std::string name = name_of(kind.param);
  std::erase(name, '-');
  return name;
});

TEST_P(AllReduceSchedule, LeavesTheExactSumOnEveryRankUnderAnyOrderOfDelivery) {
  for (int size = 1; size <= 33; ++size) {
    for (std::size_t length : {0u, 1u, 15u, 16u, 17u, 100u, 531u, 1000u}) {
      for (std::size_t segment : {0u, 16u, 40u}) {
        const std::uint64_t seed = 100u * static_cast<unsigned>(size) + length + segment / 8;
        const SimulatedWire::Reads reads = kBothReads[seed % 2];
        SCOPED_TRACE(testing::Message() << size << " ranks, " << length << " elements, segments of " << segment
                                        << (reads == kBothReads[0] ? ", read when sent" : ", read when received"));
        const auto sum = agreed(all_reduces(GetParam(), size, length, segment), buffers_of(size, length, whole),
                                {.reads = reads, .seed = seed, .slowest = static_cast<int>(seed) % size});
        for (std::size_t i = 0; i < length; ++i) {
          ASSERT_EQ(sum[i], std::ldexp(1.0, size) - 1 + static_cast<double>(size) * static_cast<double>(i % 3));
        }
        if (HasFailure()) return;
      }
    }
  }
}

// Sums of whole numbers that stay exact for many ranks.
double cubed(int rank, std::size_t i) { return std::pow(rank + 1, 3) + static_cast<double>(i % 3); }

TEST_P(AllReduceSchedule, LeavesTheExactSumOnManyRanks) {
  for (const int size : {65, 100, 128}) {
    SCOPED_TRACE(testing::Message() << size << " ranks");
    const std::size_t length = 531;
    const auto sum = agreed(all_reduces(GetParam(), size, length), buffers_of(size, length, cubed),
                            {.reads = kBothReads[size % 2], .seed = 7, .slowest = 64});
    const double cubes = std::pow(size * (size + 1) / 2, 2);
    for (std::size_t i = 0; i < length; ++i) {
      ASSERT_EQ(sum[i], cubes + static_cast<double>(size) * static_cast<double>(i % 3));
    }
  }
}

// The order of summing is the schedule's, whatever comes first, and however the buffer is cut.
TEST_P(AllReduceSchedule, GivesAllRanksTheSameBitsInAnyOrderOfDeliveryAndForAnySegments) {
  for (int size : {2, 3, 4, 5, 6, 7, 8, 12, 16, 17}) {
    const std::size_t length = 401;
    const auto expected = agreed(all_reduces(GetParam(), size, length), buffers_of(size, length, uneven), {});
    for (int slowest = -1; slowest < size; ++slowest) {
      for (const std::size_t segment : {0u, 16u, 48u}) {
        for (const SimulatedWire::Reads reads : kBothReads) {
          SCOPED_TRACE(testing::Message() << size << " ranks, segments of " << segment << ", slowest " << slowest);
          ASSERT_EQ(agreed(all_reduces(GetParam(), size, length, segment), buffers_of(size, length, uneven),
                           {.reads = reads, .seed = segment, .slowest = slowest}),
                    expected);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_P(AllReduceSchedule, CutsPartsNoLargerThanSegments) {
  for (int size : {2, 3, 7, 8}) {
    for (int rank = 0; rank < size; ++rank) {
      for (const ScheduleStep& step : all_reduce_schedule(GetParam(), rank, size, 2000, 48)) {
        if (!step.send) continue;
        EXPECT_LE(step.send->range.size(), 48u);
        EXPECT_EQ(step.send->range.begin % kAlignment, 0u);
      }
    }
  }
}

TEST_P(AllReduceSchedule, IsKnownByItsName) {
  const Result<ScheduleKind> kind = parse_schedule_kind(name_of(GetParam()));
  ASSERT_TRUE(kind.ok());
  EXPECT_EQ(*kind, GetParam());
}

TEST(ScheduleNames, AreListedWhereAnotherIsAskedFor) {
  const Status status = parse_schedule_kind("rings").status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "rings: a schedule is ring, halving-doubling, doubling, tree, binomial-tree, direct or hierarchical");
}

// What every rank sends, in messages and elements.
struct Sent {
  std::size_t messages = 0;
  std::size_t elements = 0;

  bool operator==(const Sent&) const = default;
};
std::vector<Sent> sent_by_ranks(const std::vector<Schedule>& schedules, std::size_t length) {
  const auto size = static_cast<int>(schedules.size());
  ScheduleSimulation simulation(schedules, buffers_of(size, length, whole), {});
  EXPECT_TRUE(simulation.run());
  std::vector<Sent> sent;
  for (std::size_t rank = 0; rank < schedules.size(); ++rank) {
    sent.push_back({simulation.sent_messages()[rank], simulation.sent_elements()[rank]});
  }
  return sent;
}

TEST(RingAllReduce, SendsTwiceTheBufferLessOneShareFromEveryRank) {
  for (std::size_t size : {2u, 3u, 4u, 8u, 16u}) {
    const std::size_t length = size * kAlignment * 5;
    for (const Sent& sent : sent_by_ranks(all_reduces(ScheduleKind::kRing, static_cast<int>(size), length), length)) {
      EXPECT_EQ(sent, (Sent{2 * (size - 1), 2 * (size - 1) * length / size}));
    }
  }
}

// Ring and direct; other kinds go as the ring does.
TEST(Halves, LeaveTheBitsOfTheAllReduceInEachRanksPartAndThenEverywhere) {
  for (const ScheduleKind kind : {ScheduleKind::kRing, ScheduleKind::kDirect}) {
    for (const int size : {2, 3, 5, 8}) {
      for (const std::size_t length : {0u, 1u, 17u, 401u}) {
        for (const std::size_t segment : {0u, 16u}) {
          SCOPED_TRACE(testing::Message() << name_of(kind) << ", " << size << " ranks, " << length << " elements");
          const auto whole = agreed(all_reduces(kind, size, length), buffers_of(size, length, uneven), {});
          const SimulatedWire wire{.reads = kBothReads[length % 2], .seed = length, .slowest = size / 2};
          ScheduleSimulation sums(
              for_all_ranks(size, [&](int rank) { return reduce_scatter_schedule(kind, rank, size, length, segment); }),
              buffers_of(size, length, uneven), wire);
          ASSERT_TRUE(sums.run());
          std::vector<ScheduleSimulation::Buffer> parts = sums.buffers();
          std::size_t owned = 0;
          for (int rank = 0; rank < size; ++rank) {
            ScheduleSimulation::Buffer& buffer = parts[static_cast<std::size_t>(rank)];
            const Range own = own_part(kind, rank, size, length);
            owned += own.size();
            for (std::size_t i = 0; i < length; ++i) {
              if (i < own.begin || i >= own.end) {
                buffer[i] = -1;  // what does not matter
              } else {
                ASSERT_EQ(buffer[i], whole[i]) << "rank " << rank << ", element " << i;
              }
            }
          }
          ASSERT_EQ(owned, length);
          const auto gathered = agreed(
              for_all_ranks(size, [&](int rank) { return all_gather_schedule(kind, rank, size, length, segment); }),
              parts, wire);
          ASSERT_EQ(gathered, whole);
        }
      }
    }
  }
}

TEST(Halves, SendTheBufferLessOneShareEach) {
  for (const auto& halves : {reduce_scatter_schedule, all_gather_schedule}) {
    for (const ScheduleKind kind : {ScheduleKind::kRing, ScheduleKind::kDirect}) {
      ScheduleSimulation simulation(for_all_ranks(5, [&](int rank) { return halves(kind, rank, 5, 5 * 160, 0); }),
                                    buffers_of(5, 5 * 160, uneven), {});
      ASSERT_TRUE(simulation.run());
      for (const std::size_t sent : simulation.sent_elements()) EXPECT_EQ(sent, 4u * 160);
      for (const std::size_t sent : simulation.sent_messages()) EXPECT_EQ(sent, 4u);
    }
  }
}

TEST(HalvingDoublingAllReduce, SendsTheRingsElementsInLogarithmicallyManyMessages) {
  for (std::size_t size : {2u, 4u, 8u, 16u, 32u}) {
    const std::size_t length = size * kAlignment * 5;
    const std::size_t rounds = std::bit_width(size) - 1;
    for (const Sent& sent :
         sent_by_ranks(all_reduces(ScheduleKind::kHalvingDoubling, static_cast<int>(size), length), length)) {
      EXPECT_EQ(sent, (Sent{2 * rounds, 2 * (size - 1) * length / size}));
    }
  }
}

// Ranks of a host lie behind each other; both numbers are powers of two.
TEST(HalvingDoublingAllReduce, SendsBetweenHostsNoMoreThanOneOfEachHostWould) {
  for (const auto& [hosts, ranks] : {std::pair(2, 2), std::pair(2, 4), std::pair(4, 2), std::pair(4, 8)}) {
    const int size = hosts * ranks;
    const std::size_t length = static_cast<std::size_t>(size) * kAlignment * 5;
    std::vector<std::size_t> sent_by_host(static_cast<std::size_t>(hosts));
    for (int rank = 0; rank < size; ++rank) {
      for (const ScheduleStep& step : all_reduce_schedule(ScheduleKind::kHalvingDoubling, rank, size, length)) {
        if (!step.send || step.send->peer / ranks == rank / ranks) continue;
        sent_by_host[static_cast<std::size_t>(rank / ranks)] += step.send->range.size();
      }
    }
    const auto h = static_cast<std::size_t>(hosts);
    EXPECT_THAT(sent_by_host, testing::Each(2 * (h - 1) * length / h)) << hosts << " hosts of " << ranks;
  }
}

TEST(HalvingDoublingAllReduce, FoldsRanksBeyondAPowerOfTwoIntoOthers) {
  const std::size_t length = 4 * kAlignment;
  const std::vector<Sent> sent = sent_by_ranks(all_reduces(ScheduleKind::kHalvingDoubling, 5, length), length);
  const Sent among_four{4, 2 * 3 * length / 4};
  EXPECT_EQ(sent[0], (Sent{among_four.messages + 1, among_four.elements + length}));
  for (int rank : {1, 2, 3}) EXPECT_EQ(sent[static_cast<std::size_t>(rank)], among_four);
  EXPECT_EQ(sent[4], (Sent{1, length}));
}

TEST(DoublingAllReduce, SendsTheWholeBufferInEachOfLogarithmicallyManyRounds) {
  for (std::size_t size : {2u, 4u, 8u, 16u, 32u}) {
    const std::size_t rounds = std::bit_width(size) - 1;
    for (const Sent& sent : sent_by_ranks(all_reduces(ScheduleKind::kDoubling, static_cast<int>(size), 100), 100)) {
      EXPECT_EQ(sent, (Sent{rounds, rounds * 100}));
    }
  }
}

TEST(DirectAllReduce, SendsTheRingsElementsInAsManyMessages) {
  for (std::size_t size : {2u, 3u, 4u, 8u, 16u}) {
    const std::size_t length = size * kAlignment * 5;
    for (const Sent& sent : sent_by_ranks(all_reduces(ScheduleKind::kDirect, static_cast<int>(size), length), length)) {
      EXPECT_EQ(sent, (Sent{2 * (size - 1), 2 * (size - 1) * length / size}));
    }
  }
}

TEST(DirectAllReduce, SumsInTheOrderOfRanks) {
  for (int size = 2; size <= 9; ++size) {
    const auto sum = agreed(all_reduces(ScheduleKind::kDirect, size, 300, 32), buffers_of(size, 300, uneven), {});
    for (std::size_t i = 0; i < sum.size(); ++i) {
      double in_order = uneven(0, i);
      for (int rank = 1; rank < size; ++rank) in_order += uneven(rank, i);
      ASSERT_EQ(sum[i], in_order) << size << " ranks, element " << i;
    }
  }
}

TEST(BinomialTreeAllReduce, SendsTheWholeBufferUpOnceAndDownOnceForEveryRankButTheRoot) {
  for (std::size_t size : {2u, 3u, 4u, 7u, 8u, 16u}) {
    Sent all;
    for (const Sent& sent : sent_by_ranks(all_reduces(ScheduleKind::kBinomialTree, static_cast<int>(size), 100), 100)) {
      all.messages += sent.messages;
      all.elements += sent.elements;
    }
    EXPECT_EQ(all, (Sent{2 * (size - 1), 2 * (size - 1) * 100}));
  }
}

TEST(TreeAllReduce, SendsEachHalfUpOnceAndDownOnceAndSharesTheWork) {
  for (std::size_t size = 2; size <= 33; ++size) {
    const std::size_t length = 10 * kAlignment;
    Sent all;
    for (const Sent& sent : sent_by_ranks(all_reduces(ScheduleKind::kTree, static_cast<int>(size), length), length)) {
      all.messages += sent.messages;
      all.elements += sent.elements;
      // In one tree to two children and the parent, in the other to the parent alone.
      EXPECT_LE(sent.messages, 4u) << size << " ranks";
      EXPECT_LE(sent.elements, 2 * length) << size << " ranks";
    }
    EXPECT_EQ(all, (Sent{4 * (size - 1), 2 * (size - 1) * length}));
  }
}

TEST(HierarchicalAllReduce, LeavesTheExactSumOnHostsOfAnyNumberOfRanks) {
  const std::vector<RanksByHost> groups = {{{0}},
                                           {{0, 1, 2}},
                                           {{0}, {1}, {2}, {3}},
                                           {{0, 1}, {2, 3}},
                                           {{0, 1, 2, 3}, {4}},
                                           {{0, 2, 4}, {1, 3, 5}},
                                           {{0, 1}, {2, 3, 4}, {5, 6, 7, 8}},
                                           {{5, 1, 3}, {4, 0, 2, 6}}};
  for (const RanksByHost& hosts : groups) {
    int size = 0;
    for (const auto& ranks : hosts) size += static_cast<int>(ranks.size());
    for (std::size_t length : {0u, 1u, 17u, 100u, 1000u}) {
      for (std::size_t segment : {0u, 16u, 48u}) {
        ScheduleSimulation::Buffer same_bits;
        for (int slowest = -1; slowest < size; ++slowest) {
          const auto schedules = for_all_ranks(size, [&](int rank) {
            return all_reduce_schedule(ScheduleKind::kHierarchical, rank, size, length, segment, hosts);
          });
          const SimulatedWire wire{.seed = length, .slowest = slowest};
          const auto sum = agreed(schedules, buffers_of(size, length, whole), wire);
          for (std::size_t i = 0; i < length; ++i) {
            ASSERT_EQ(sum[i], std::ldexp(1.0, size) - 1 + static_cast<double>(size) * static_cast<double>(i % 3));
          }
          const auto bits = agreed(schedules, buffers_of(size, length, uneven), wire);
          if (!same_bits.empty()) {
            ASSERT_EQ(bits, same_bits);
          }
          same_bits = bits;
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(HierarchicalAllReduce, SendsAcrossHostsOnlyTheRingOfEachChunk) {
  const RanksByHost hosts = {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10, 11}};
  const std::size_t length = 3 * 4 * kAlignment;
  for (int rank = 0; rank < 12; ++rank) {
    Sent inside, across;
    for (const ScheduleStep& step : all_reduce_schedule(ScheduleKind::kHierarchical, rank, 12, length, 0, hosts)) {
      if (!step.send || step.send->peer == rank) continue;
      Sent& sent = step.send->peer / 3 == rank / 3 ? inside : across;
      ++sent.messages;
      sent.elements += step.send->range.size();
    }
    EXPECT_EQ(inside, (Sent{2 * 2, 2 * 2 * length / 3}));
    EXPECT_EQ(across, (Sent{2 * 3, 2 * 3 * (length / 3) / 4}));
  }
}

TEST(OwnedChunk, IsOfTheFirstRanksOfEachHostAsManyAsTheSmallestHas) {
  const RanksByHost hosts = {{0, 1, 2}, {5, 3}, {4, 6, 7, 8}};
  EXPECT_EQ(owners_on_each_host(hosts), 2u);
  const OwnedChunk second = owned_chunk(3, 100, hosts);
  EXPECT_EQ(second.owners, (std::vector<int>{1, 3, 6}));
  EXPECT_EQ(second.host, 1);
  EXPECT_EQ(second.place, 1);
  EXPECT_EQ(second.range, (Range{owned_chunk(5, 100, hosts).range.end, 100}));
  const OwnedChunk none = owned_chunk(8, 100, hosts);
  EXPECT_TRUE(none.owners.empty());
  EXPECT_EQ(none.range.size(), 0u);
  EXPECT_EQ(none.place, 3);
}

TEST(PairSchedule, LeavesTheSumOfTwoBuffersInBothAndConcernsNobodyElse) {
  for (std::size_t length : {0u, 1u, 16u, 17u, 1000u}) {
    for (std::size_t segment : {0u, 48u}) {
      const auto schedules = for_all_ranks(5, [&](int rank) {
        return rank == 1   ? pair_schedule(1, 4, length, segment)
               : rank == 4 ? pair_schedule(4, 1, length, segment)
                           : Schedule();
      });
      ScheduleSimulation simulation(schedules, buffers_of(5, length, uneven), {});
      ASSERT_TRUE(simulation.run());
      for (std::size_t i = 0; i < length; ++i) {
        for (std::size_t rank : {1u, 4u}) ASSERT_EQ(simulation.buffers()[rank][i], uneven(1, i) + uneven(4, i));
        ASSERT_EQ(simulation.buffers()[2][i], uneven(2, i));
      }
      EXPECT_LE(simulation.sent_elements()[1], length + kAlignment);
    }
  }
}

TEST(BroadcastSchedule, GivesEveryRankTheRootsBufferInLogarithmicRounds) {
  for (int size = 1; size <= 33; ++size) {
    for (int root : {0, size - 1, size / 2}) {
      const auto buffer =
          agreed(for_all_ranks(size, [&](int rank) { return broadcast_schedule(rank, size, 10, root); }),
                 buffers_of(size, 10, whole), {.seed = static_cast<unsigned>(size)});
      for (std::size_t i = 0; i < 10; ++i) ASSERT_EQ(buffer[i], whole(root, i));
      EXPECT_LE(std::size_t{1} << (broadcast_schedule(root, size, 10, root).size()), 2u * static_cast<unsigned>(size));
    }
  }
}

TEST(BroadcastSchedule, PassesALongBufferAlongAChainInWhichEveryRankSendsItOnce) {
  for (int size = 1; size <= 12; ++size) {
    for (int root : {0, size - 1, size / 2}) {
      const std::size_t length = 1000;
      const auto schedules =
          for_all_ranks(size, [&](int rank) { return broadcast_schedule(rank, size, length, root, 16); });
      const auto buffer = agreed(schedules, buffers_of(size, length, whole), {.seed = static_cast<unsigned>(size)});
      for (std::size_t i = 0; i < length; ++i) ASSERT_EQ(buffer[i], whole(root, i));
      const int last = (root + size - 1) % size;
      const std::vector<Sent> sent = sent_by_ranks(schedules, length);
      for (int rank = 0; rank < size; ++rank) {
        EXPECT_EQ(sent[static_cast<std::size_t>(rank)].elements, rank == last ? 0u : length);
      }
    }
  }
}

TEST(BarrierSchedule, LetsNobodyLeaveBeforeEverybodyHasEntered) {
  for (int size = 2; size <= 17; ++size) {
    for (int late = 0; late < size; ++late) {
      // The late rank never begins: then nobody may come to the end.
      std::vector<Schedule> schedules = for_all_ranks(size, [&](int rank) { return barrier_schedule(rank, size); });
      ScheduleStep never;
      never.receive = ReceivePart{late, Range{0, 0}, ReceivePart::Then::kCopy};
      schedules[static_cast<std::size_t>(late)].insert(schedules[static_cast<std::size_t>(late)].begin(), never);
      ScheduleSimulation barrier(schedules, buffers_of(size, 1, whole), {});
      EXPECT_FALSE(barrier.run());
      EXPECT_EQ(barrier.finished(), 0u) << size << " ranks, late " << late;
    }
    ScheduleSimulation barrier(for_all_ranks(size, [&](int rank) { return barrier_schedule(rank, size); }),
                               buffers_of(size, 1, whole), {});
    EXPECT_TRUE(barrier.run());
  }
}

}  // namespace
}  // namespace syncopate::allreduce
