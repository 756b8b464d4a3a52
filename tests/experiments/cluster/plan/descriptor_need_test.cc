#include "experiments/cluster/plan/descriptor_need.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

ResolvedRun ps(int workers, int servers) {
  RunRequest config;
  config.mode = Mode::kPs;
  config.workers = workers;
  config.servers = servers;
  return resolved(config);
}

TEST(DescriptorNeed, GrowsWithProcessesShardsAndConnections) {
  EXPECT_GT(descriptors_of_coordinator(make_plan(ps(4, 2), "run-7", "box")),
            descriptors_of_coordinator(make_plan(ps(2, 2), "run-7", "box")));
  EXPECT_GT(descriptors_of_process(ps(4, 2)), descriptors_of_process(ps(2, 2)));
  ResolvedRun more = ps(2, 2);
  more.shards_per_server = 4;
  EXPECT_GT(descriptors_of_process(more), descriptors_of_process(ps(2, 2)));
  more = ps(2, 2);
  more.connections = 8;
  EXPECT_GT(descriptors_of_process(more), descriptors_of_process(ps(2, 2)));
}

TEST(DescriptorNeed, IsRefusedWhereTheLimitIsBelow) {
  const ResolvedRun config = ps(4, 2);
  const JobPlan plan = make_plan(config, "run-7", "box");
  const std::int64_t needed = std::max(descriptors_of_coordinator(plan), descriptors_of_process(config));
  EXPECT_TRUE(check_descriptors(config, plan, needed, false).ok());
  const Status refused = check_descriptors(config, plan, needed - 1, false);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), testing::HasSubstr("ulimit -Hn"));
}

// There are no connections, and no memory that hosts' ranks show each other.
TEST(DescriptorNeed, OfASimulatedRunIsOneForEachWorker) {
  RunRequest request;
  request.mode = Mode::kAllreduce;
  request.cluster = ClusterKind::kSimulated;
  request.batch_size = 1;
  request.hosts = {{.name = "a", .slots = 512}, {.name = "b", .slots = 512}};
  const ResolvedRun config = resolved(request);
  ASSERT_EQ(config.workers, 1024);
  const JobPlan plan = make_plan(config, "run-7", "box");
  EXPECT_TRUE(check_descriptors(config, plan, 1024 + 32, false).ok());
  EXPECT_THAT(check_descriptors(config, plan, 1024, false).message(), testing::HasSubstr("use fewer workers"));
}

TEST(DescriptorNeed, OfAnUsualRunIsLittle) {
  const ResolvedRun config = ps(8, 2);
  EXPECT_TRUE(check_descriptors(config, make_plan(config, "run-7", "box"), 256, false).ok());
}

TEST(DescriptorNeed, CountsWhatIsOnItsWayOverSharedMemoryUnlessRootSendsIt) {
  ResolvedRun config = ps(128, 2);
  const JobPlan plan = make_plan(config, "run-7", "box");
  EXPECT_EQ(descriptors_on_their_way(config), 130 * 129 / 2);
  EXPECT_THAT(check_descriptors(config, plan, 8000, false).message(), testing::HasSubstr("--transport=sockets"));
  EXPECT_TRUE(check_descriptors(config, plan, 8000, true).ok());
  EXPECT_TRUE(check_descriptors(config, plan, 8385, false).ok());
  config.transport = TransportKind::kSockets;
  EXPECT_EQ(descriptors_on_their_way(config), 0);
}

TEST(DescriptorNeed, CountsBothGroupsOfAWorkerThatAlsoSumsWithOthers) {
  RunRequest request;
  request.mode = Mode::kHybrid;
  request.model = "ncf";
  request.dataset = "zipf-ratings";
  request.workers = 8;
  request.servers = 2;
  request.replicas = 1;  // of another row of a comparison: it has none
  const ResolvedRun hybrid = resolved(request);
  EXPECT_EQ(descriptors_on_their_way(hybrid), 10 * 9 / 2 + 7 * 8 * 7 / 2);
  EXPECT_EQ(descriptors_of_process(hybrid) - descriptors_of_process(ps(8, 2)), 7 * (6 + 2));
}

TEST(DescriptorNeed, CountsTheMemoryThatRanksOfTheLargestHostShowEachOtherOnTwoLevels) {
  RunRequest request;
  request.mode = Mode::kAllreduce;
  request.hosts = {{.name = "a", .slots = 3}, {.name = "b", .slots = 4}};
  request.workers = 6;
  request.collective = CollectiveKind::kRing;
  const ResolvedRun ring = resolved(request);
  EXPECT_EQ(descriptors_on_their_way(ring), 0);
  request.collective = CollectiveKind::kHierarchical;
  const ResolvedRun two_levels = resolved(request);
  EXPECT_EQ(descriptors_on_their_way(two_levels), 3 * (1 + 2 * 3)) << "3 pairs on each host";
  EXPECT_GT(descriptors_of_process(two_levels), descriptors_of_process(ring));
  request.collective = CollectiveKind::kBySize;
  EXPECT_EQ(descriptors_on_their_way(resolved(request)), 3 * (1 + 2 * 3)) << "it may choose two levels";
  request.hosts = {{.name = "a", .slots = 1}, {.name = "b", .slots = 1}};
  request.workers = 2;
  EXPECT_EQ(descriptors_on_their_way(resolved(request)), 0) << "no host has two";
}

TEST(DescriptorNeed, CountsTheSameWhereHostsAreAggregated) {
  RunRequest request;
  request.mode = Mode::kPs;
  request.consistency = *ps::Consistency::parse("sync");
  request.hosts = {{.name = "a", .slots = 3}, {.name = "b", .slots = 4}};
  request.workers = 6;
  const ResolvedRun flat = resolved(request);
  EXPECT_EQ(descriptors_on_their_way(flat), 0);
  request.aggregation = Aggregation::kHost;
  const ResolvedRun aggregated = resolved(request);
  EXPECT_EQ(descriptors_on_their_way(aggregated), 3 * (1 + 2 * 3));
  EXPECT_GT(descriptors_of_process(aggregated), descriptors_of_process(flat));
  const JobPlan plan = make_plan(aggregated, "run-7", "box");
  EXPECT_THAT(check_descriptors(aggregated, plan, 20, false).message(), testing::HasSubstr("--aggregation=off"));
}

}  // namespace
}  // namespace syncopate::experiments
