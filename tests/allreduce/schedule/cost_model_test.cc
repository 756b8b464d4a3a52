#include "allreduce/schedule/cost_model.h"

#include <gtest/gtest.h>

#include <bit>

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

// Returns so many bytes that every rank's share, and its half, is aligned.
std::size_t even_bytes(int size) { return static_cast<std::size_t>(size) * 100 * kAlignment * sizeof(float); }

TEST(CostModel, IsExactForPowersOfTwo) {
  for (const ScheduleKind kind : {ScheduleKind::kRing, ScheduleKind::kHalvingDoubling, ScheduleKind::kDoubling,
                                  ScheduleKind::kBinomialTree, ScheduleKind::kDirect}) {
    for (int size : {1, 2, 4, 8, 16, 32}) {
      for (const LinkModel& link : {kLink, kLatencyAlone, kBytesAlone, kReductionsAlone}) {
        const double predicted = predicted_seconds(kind, size, even_bytes(size), link);
        EXPECT_NEAR(simulated(kind, size, even_bytes(size), link), predicted, 1e-9 * predicted)
            << name_of(kind) << " of " << size;
      }
    }
  }
}

TEST(CostModel, IsExactForRingAndDirectOfAnyNumberOfRanks) {
  for (const ScheduleKind kind : {ScheduleKind::kRing, ScheduleKind::kDirect}) {
    for (int size = 1; size <= 33; ++size) {
      const double predicted = predicted_seconds(kind, size, even_bytes(size), kLink);
      EXPECT_NEAR(simulated(kind, size, even_bytes(size), kLink), predicted, 1e-9 * predicted)
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
          const double share = simulated(kind, size, 400000, link, segment_bytes) /
                               predicted_seconds(kind, size, 400000, link, segment_bytes);
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
  const double transfers = predicted_seconds(ScheduleKind::kRing, 4, bytes, kBytesAlone);
  EXPECT_DOUBLE_EQ(simulated(ScheduleKind::kRing, 4, bytes, balanced), 1.5 * transfers);
  EXPECT_LE(simulated(ScheduleKind::kRing, 4, bytes, balanced, bytes / 4 / 10), 1.1 * transfers);
}

TEST(CostModel, IsExactForHostsOfEqualRanks) {
  const LinkModel inside{.latency = 1e-6, .seconds_per_byte = 0.1e-9, .reduce_seconds_per_byte = 0.3e-9};
  for (int hosts : {1, 2, 3, 4}) {
    for (int ranks : {1, 2, 4}) {
      RanksByHost by_host(static_cast<std::size_t>(hosts));
      for (int rank = 0; rank < hosts * ranks; ++rank) by_host[static_cast<std::size_t>(rank / ranks)].push_back(rank);
      const std::size_t bytes = even_bytes(hosts * ranks);
      const auto schedules = for_all_ranks(hosts * ranks, [&](int rank) {
        return all_reduce_schedule(ScheduleKind::kHierarchical, rank, hosts * ranks, bytes / sizeof(float), 0, by_host);
      });
      const double seconds =
          simulated_seconds(schedules, [&](int from, int to) { return from / ranks == to / ranks ? inside : kLink; });
      const double predicted = predicted_hierarchical_seconds(hosts, ranks, bytes, inside, kLink);
      EXPECT_NEAR(seconds, predicted, 1e-9 * predicted) << hosts << " hosts of " << ranks;
    }
  }
}

TEST(ChooseSchedule, TakesFewMessagesForShortBuffersAndFewBytesForLongOnes) {
  EXPECT_EQ(choose_schedule(8, 64, kLink), ScheduleKind::kDoubling);
  EXPECT_EQ(choose_schedule(8, 100'000'000, kLink), ScheduleKind::kHalvingDoubling);
  // What is folded moves the whole buffer twice more.
  EXPECT_EQ(choose_schedule(7, 100'000'000, kLink), ScheduleKind::kRing);
  EXPECT_EQ(choose_schedule(1, 64, kLink), ScheduleKind::kRing);
  EXPECT_EQ(choose_schedule(2, 100'000'000, kLink), ScheduleKind::kRing);
}

TEST(ChooseSchedule, TakesTheTreeWhereManyRanksMakeTheRingLongAndFoldingIsDear) {
  EXPECT_EQ(choose_schedule(127, 1'000'000, kLink, 65536), ScheduleKind::kTree);
}

TEST(ChooseSchedule, TakesNoneThatIsMuchSlowerThanAnotherInTheSimulation) {
  for (int size : {3, 4, 7, 8, 12, 16}) {
    for (const std::size_t bytes : {1024u, 65536u, 1048576u, 8388608u}) {
      const ScheduleKind chosen = choose_schedule(size, bytes, kLink, 65536);
      const auto seconds = [&](ScheduleKind kind) { return simulated(kind, size, bytes, kLink, 65536); };
      for (const ScheduleKind other : kAllScheduleKinds) {
        EXPECT_LE(seconds(chosen), 1.34 * seconds(other))
            << name_of(chosen) << " is slower than " << name_of(other) << " for " << size << ", " << bytes << " bytes";
      }
    }
  }
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
