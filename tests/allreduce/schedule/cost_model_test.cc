#include "allreduce/schedule/cost_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "allreduce/schedule/simulated_time.h"
#include "tests/support/schedule_simulation.h"

namespace syncopate::allreduce {
namespace {

using testing_support::for_all_ranks;

constexpr LinkModel kLink{.latency = 20e-6, .seconds_per_byte = 1e-9, .reduce_seconds_per_byte = 0.3e-9};
constexpr LinkModel kLatencyAlone{.latency = 1};
constexpr LinkModel kBytesAlone{.seconds_per_byte = 1};
constexpr LinkModel kReductionsAlone{.reduce_seconds_per_byte = 1};

double simulated(ScheduleKind kind, int size, std::size_t bytes, const LinkModel& link, std::size_t segment_bytes = 0) {
  const auto schedules = for_all_ranks(size, [&](int rank) {
    return all_reduce_schedule(kind, rank, size, bytes / sizeof(float), segment_bytes / sizeof(float));
  });
  return simulated_seconds(schedules, [&](int, int) { return link; });
}

double predicted(ScheduleKind kind, int size, std::size_t bytes, const LinkModel& link, std::size_t segment_bytes = 0) {
  return CostModel(one_host(size), uniform_links(link), segment_bytes).seconds(kind, bytes);
}

ScheduleKind chosen(int size, std::size_t bytes, std::size_t segment_bytes = 0) {
  return CostModel(one_host(size), uniform_links(kLink), segment_bytes).cheapest(bytes);
}

// Returns so many bytes that every rank's share, and its half, is aligned.
std::size_t even_bytes(int size) { return static_cast<std::size_t>(size) * 100 * kAlignment * sizeof(float); }

TEST(CostModel, IsExactForPowersOfTwo) {
  for (const ScheduleKind kind : {ScheduleKind::kRing, ScheduleKind::kHalvingDoubling, ScheduleKind::kDoubling,
                                  ScheduleKind::kBinomialTree, ScheduleKind::kDirect}) {
    for (int size : {1, 2, 4, 8, 16, 32}) {
      for (const LinkModel& link : {kLink, kLatencyAlone, kBytesAlone, kReductionsAlone}) {
        const double expected = predicted(kind, size, even_bytes(size), link);
        EXPECT_NEAR(simulated(kind, size, even_bytes(size), link), expected, 1e-9 * expected)
            << name_of(kind) << " of " << size;
      }
    }
  }
}

TEST(CostModel, IsExactForRingAndDirectOfAnyNumberOfRanks) {
  for (const ScheduleKind kind : {ScheduleKind::kRing, ScheduleKind::kDirect}) {
    for (int size = 1; size <= 33; ++size) {
      const double expected = predicted(kind, size, even_bytes(size), kLink);
      EXPECT_NEAR(simulated(kind, size, even_bytes(size), kLink), expected, 1e-9 * expected)
          << name_of(kind) << " of " << size;
    }
  }
}

TEST(CostModel, IsWithinItsBoundForAnyNumberOfRanksCutOrUncut) {
  constexpr LinkModel kSlowToReduce{.latency = 1e-6, .seconds_per_byte = 1e-9, .reduce_seconds_per_byte = 3e-9};
  for (const ScheduleKind kind : kAllScheduleKinds) {
    for (int size : {2, 3, 5, 7, 8, 12, 17, 33}) {
      for (const LinkModel& link : {kLink, kLatencyAlone, kBytesAlone, kSlowToReduce}) {
        for (const std::size_t segment_bytes : {0u, 16384u, 65536u}) {
          const double share =
              simulated(kind, size, 400000, link, segment_bytes) / predicted(kind, size, 400000, link, segment_bytes);
          const double bound = kind == ScheduleKind::kTree && segment_bytes == 0 ? 2 : 1.6;
          EXPECT_LE(share, bound) << name_of(kind) << " of " << size << ", segments of " << segment_bytes;
          EXPECT_GE(share, 1 / bound) << name_of(kind) << " of " << size << ", segments of " << segment_bytes;
        }
      }
    }
  }
}

TEST(CostModel, HidesReductionsBehindTransfersWhereTheRingIsCut) {
  const LinkModel balanced{.seconds_per_byte = 1, .reduce_seconds_per_byte = 1};
  const std::size_t bytes = even_bytes(4);
  const double transfers = predicted(ScheduleKind::kRing, 4, bytes, kBytesAlone);
  EXPECT_DOUBLE_EQ(simulated(ScheduleKind::kRing, 4, bytes, balanced), 1.5 * transfers);
  EXPECT_LE(simulated(ScheduleKind::kRing, 4, bytes, balanced, bytes / 4 / 10), 1.1 * transfers);
}

TEST(CheapestSchedule, TakesFewMessagesForShortBuffersAndFewBytesForLongOnes) {
  EXPECT_EQ(chosen(8, 64), ScheduleKind::kDoubling);
  EXPECT_EQ(chosen(8, 100'000'000), ScheduleKind::kHalvingDoubling);
  // What is folded moves the whole buffer twice more.
  EXPECT_EQ(chosen(7, 100'000'000), ScheduleKind::kRing);
  EXPECT_EQ(chosen(1, 64), ScheduleKind::kRing);
  EXPECT_EQ(chosen(2, 100'000'000), ScheduleKind::kRing);
}

TEST(CheapestSchedule, TakesTheTreeWhereManyRanksMakeTheRingLongAndFoldingIsDear) {
  EXPECT_EQ(chosen(127, 1'000'000, 65536), ScheduleKind::kTree);
}

TEST(CheapestSchedule, TakesNoneThatIsMuchSlowerThanAnotherInTheSimulation) {
  for (int size : {3, 4, 7, 8, 12, 16}) {
    for (const std::size_t bytes : {1024u, 65536u, 1048576u, 8388608u}) {
      const ScheduleKind choice = chosen(size, bytes, 65536);
      const auto seconds = [&](ScheduleKind kind) { return simulated(kind, size, bytes, kLink, 65536); };
      for (const ScheduleKind other : kAllScheduleKinds) {
        EXPECT_LE(seconds(choice), 1.34 * seconds(other))
            << name_of(choice) << " is slower than " << name_of(other) << " for " << size << ", " << bytes << " bytes";
      }
    }
  }
}

// Hosts with these numbers of ranks, which lie behind each other.
RanksByHost hosts_of(const std::vector<int>& ranks) {
  RanksByHost hosts;
  int next = 0;
  for (const int count : ranks) {
    hosts.emplace_back();
    for (int i = 0; i < count; ++i) hosts.back().push_back(next++);
  }
  return hosts;
}

int size_of(const RanksByHost& hosts) { return HostTraffic(hosts).size(); }

double simulated(ScheduleKind kind, const RanksByHost& hosts, std::size_t bytes, const GroupLinks& links,
                 std::size_t segment_bytes) {
  const int size = size_of(hosts);
  const auto schedules = for_all_ranks(size, [&](int rank) {
    return all_reduce_schedule(kind, rank, size, bytes / sizeof(float), segment_bytes / sizeof(float), hosts);
  });
  return simulated_seconds(schedules, hosts, links);
}

constexpr LinkModel kMemory{.latency = 2e-6, .seconds_per_byte = 0.1e-9, .reduce_seconds_per_byte = 0.1e-9};
constexpr LinkModel kGigabit{.latency = 50e-6, .seconds_per_byte = 8.5e-9, .reduce_seconds_per_byte = 0.1e-9};

const std::vector<GroupLinks>& all_links() {
  static const std::vector<GroupLinks> links = {{kMemory, kGigabit, kMemory},
                                                {kMemory, kLink, kMemory},
                                                {kLink, kLink, kLink},
                                                {kMemory, {.latency = 5e-3, .seconds_per_byte = 80e-9}, kMemory}};
  return links;
}

// Every number of ranks on each of up to three hosts, and some of more.
const std::vector<RanksByHost>& all_hosts() {
  static const std::vector<RanksByHost> all = [] {
    std::vector<RanksByHost> hosts;
    for (int a = 1; a <= 4; ++a) {
      for (int b = 0; b <= 4; ++b) {
        for (int c = 0; c <= (b > 0 ? 4 : 0); ++c) {
          std::vector<int> ranks{a};
          if (b > 0) ranks.push_back(b);
          if (c > 0) ranks.push_back(c);
          if (a + b + c > 1) hosts.push_back(hosts_of(ranks));
        }
      }
    }
    hosts.push_back(hosts_of({2, 2, 2, 2}));
    hosts.push_back(hosts_of({4, 4, 4, 4}));
    hosts.push_back(hosts_of({8, 8}));
    hosts.push_back(hosts_of({1, 1, 1, 1, 1, 1, 1, 1}));
    hosts.push_back({{0, 2, 4, 6}, {1, 3, 5, 7}});  // neighbours are never on one host
    return hosts;
  }();
  return all;
}

std::string text_of(const RanksByHost& hosts) {
  std::string text;
  for (const std::vector<int>& ranks : hosts) text += fmt::format("[{}]", fmt::join(ranks, " "));
  return text;
}

TEST(CostModel, IsWithinItsBoundOnSeveralHosts) {
  for (const RanksByHost& hosts : all_hosts()) {
    for (const GroupLinks& links : all_links()) {
      for (const std::size_t segment_bytes : {0u, 65536u}) {
        const CostModel model(hosts, links, segment_bytes);
        for (const ScheduleKind kind : kAllScheduleKinds) {
          const double share = simulated(kind, hosts, 400'000, links, segment_bytes) / model.seconds(kind, 400'000);
          const double too_long = kind == ScheduleKind::kTree ? 4 : 2;
          EXPECT_LE(share, 2) << name_of(kind) << " on " << text_of(hosts) << ", segments of " << segment_bytes;
          EXPECT_GE(share, 1 / too_long) << name_of(kind) << " on " << text_of(hosts) << ", segments of "
                                         << segment_bytes;
        }
      }
    }
  }
}

// In sums of short buffers some ranks have no share, and what is folded runs beside the rest.
TEST(CheapestSchedule, IsNeverMuchSlowerThanAnotherInTheSimulationOfHosts) {
  for (const RanksByHost& hosts : all_hosts()) {
    for (const GroupLinks& links : all_links()) {
      const CostModel model(hosts, links, 65536);
      for (const std::size_t bytes : {256u, 16384u, 262144u, 1048576u}) {
        const ScheduleKind choice = model.cheapest(bytes);
        const double taken = simulated(choice, hosts, bytes, links, 65536);
        for (const ScheduleKind other : kAllScheduleKinds) {
          const double of_other = simulated(other, hosts, bytes, links, 65536);
          EXPECT_LE(taken, (bytes < 1024 ? 2 : 1.5) * of_other)
              << name_of(choice) << " is slower than " << name_of(other) << " on " << text_of(hosts) << ", " << bytes
              << " bytes";
        }
      }
    }
  }
}

// 475 ms beside a ring's 1 ms: halving-doubling from the farthest rank on, which one link alone made the best.
TEST(CheapestSchedule, SendsOverASlowLinkBetweenHostsNoMoreThanHasToGo) {
  const RanksByHost hosts = hosts_of({4, 4});
  const CostModel model(hosts, {kMemory, kGigabit, kMemory});
  const ScheduleKind choice = model.cheapest(8 << 20);
  EXPECT_TRUE(choice == ScheduleKind::kHierarchical || choice == ScheduleKind::kHalvingDoubling) << name_of(choice);
  EXPECT_GT(model.seconds(ScheduleKind::kRing, 8 << 20), 1.5 * model.seconds(choice, 8 << 20));
  // Six ranks are no power of two: what is folded goes over the link.
  EXPECT_EQ(CostModel(hosts_of({3, 3}), {kMemory, kGigabit, kMemory}).cheapest(8 << 20), ScheduleKind::kHierarchical);
}

TEST(CheapestSchedule, HasTwoLevelsOnlyWhereThereAreTwo) {
  constexpr GroupLinks kAlmostFreeInside{kLink, kLink, {.seconds_per_byte = 1e-15}};
  for (const auto& hosts : {hosts_of({8}), hosts_of({1, 1, 1})}) {
    for (const std::size_t bytes : {4u, 4096u, 1u << 20}) {
      EXPECT_NE(CostModel(hosts, kAlmostFreeInside).cheapest(bytes), ScheduleKind::kHierarchical) << text_of(hosts);
    }
  }
  EXPECT_EQ(CostModel(hosts_of({2, 1}), kAlmostFreeInside).cheapest(1 << 20), ScheduleKind::kHierarchical);
}

TEST(FitLink, FindsTheLinkBehindExactTimes) {
  std::vector<TransferSample> samples;
  for (std::size_t bytes = 4; bytes < 100'000'000; bytes *= 4) {
    samples.push_back({bytes, kLink.latency + kLink.seconds_per_byte * static_cast<double>(bytes)});
  }
  const Result<LinkModel> link = fit_link(samples);
  ASSERT_TRUE(link.ok());
  EXPECT_NEAR(link->latency, kLink.latency, 1e-6 * kLink.latency);
  EXPECT_NEAR(link->seconds_per_byte, kLink.seconds_per_byte, 1e-6 * kLink.seconds_per_byte);
}

// Ten percent up and down by turns: a sample of 64 MiB must not drown those of a few bytes.
TEST(FitLink, IsWithinTheSamplesErrorsForShortAndForLongMessages) {
  std::vector<TransferSample> samples;
  double error = 1.1;
  for (std::size_t bytes = 4; bytes <= 64u << 20; bytes *= 2) {
    samples.push_back({bytes, error * (kLink.latency + kLink.seconds_per_byte * static_cast<double>(bytes))});
    error = 2 - error;
  }
  const Result<LinkModel> link = fit_link(samples);
  ASSERT_TRUE(link.ok());
  EXPECT_NEAR(link->latency, kLink.latency, 0.1 * kLink.latency);
  EXPECT_NEAR(link->seconds_per_byte, kLink.seconds_per_byte, 0.1 * kLink.seconds_per_byte);
}

TEST(FitLink, KnowsNoNegativeCosts) {
  const Result<LinkModel> no_latency = fit_link(std::vector<TransferSample>{{1000, 1e-6}, {2000, 3e-6}});
  ASSERT_TRUE(no_latency.ok());
  EXPECT_EQ(no_latency->latency, 0);
  EXPECT_GT(no_latency->seconds_per_byte, 0);
  const Result<LinkModel> latency_alone = fit_link(std::vector<TransferSample>{{1000, 3e-6}, {2000, 1e-6}});
  ASSERT_TRUE(latency_alone.ok());
  EXPECT_EQ(latency_alone->seconds_per_byte, 0);
  EXPECT_GT(latency_alone->latency, 0);
}

TEST(FitLink, RefusesWhatNoLineGoesThrough) {
  EXPECT_EQ(fit_link({}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(fit_link(std::vector<TransferSample>{{8, 1e-6}, {8, 2e-6}}).status().message(),
            "2 transfers of one size: a link is fitted to two sizes or more");
  EXPECT_EQ(fit_link(std::vector<TransferSample>{{8, 1e-6}, {16, 0}}).status().message(),
            "16 bytes in 0 s: a transfer's time must be above zero");
}

}  // namespace
}  // namespace syncopate::allreduce
