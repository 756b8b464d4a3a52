#include "experiments/lab/why/finished_pace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using testing::Contains;
using testing::Not;

std::set<std::string> refused_by_run(const RunRequest& request) {
  RunSummary summary;
  summary.reports.resize(1);
  return pace_of(resolved(request), summary, 0).refused;
}

TEST(FinishedPace, KnowsWhatTheRunWouldRefuse) {
  RunRequest allreduce;
  allreduce.mode = Mode::kAllreduce;
  allreduce.workers = 4;
  for (const char* taken : {"compress", "sync-every", "bucket-bytes", "batch-size", "shape"}) {
    EXPECT_THAT(refused_by_run(allreduce), Not(Contains(taken)));
  }
  for (const char* refused : {"consistency", "backup-workers", "sharding", "shards-per-server"}) {
    EXPECT_THAT(refused_by_run(allreduce), Contains(refused));
  }
  RunRequest ps;
  ps.mode = Mode::kPs;
  ps.workers = 4;
  ps.servers = 2;
  for (const char* taken : {"compress", "consistency", "shards-per-server", "batch-size"}) {
    EXPECT_THAT(refused_by_run(ps), Not(Contains(taken)));
  }
  EXPECT_THAT(refused_by_run(ps), Contains("sync-every"));
  EXPECT_THAT(refused_by_run(ps), Contains("sharding")) << "it has that already";
}

RunPace pace_on(const std::string& hosts, int servers, const std::string& fabric = "switch") {
  RunRequest request;
  request.mode = servers > 0 ? Mode::kPs : Mode::kAllreduce;
  request.workers = 8;
  request.servers = std::max(1, servers);
  request.cluster = ClusterKind::kSimulated;
  request.compute = *ComputeModel::parse("100ms");
  request.shape = *LinkShape::parse("1gbit");
  request.hosts = *parse_hosts(hosts);
  request.fabric = *FabricChoice::parse(fabric);
  if (servers == 0) request.collective = CollectiveKind::kRing;
  RunSummary summary;
  summary.reports.resize(1);
  return pace_of(resolved(request), summary, 0);
}

TEST(FinishedPace, KnowsWhatHostsShareTheirLinksFor) {
  const RunPace colocated = pace_on("8x1", 8);
  ASSERT_TRUE(colocated.link && colocated.host_link);
  EXPECT_DOUBLE_EQ(colocated.host_link->of_workers, 7.0 / 8);
  EXPECT_DOUBLE_EQ(colocated.host_link->of_servers, 7.0 / 8);
  RunRequest named;
  named.mode = Mode::kPs;
  named.workers = 8;
  named.colocated = true;
  named.shape = *LinkShape::parse("1gbit");
  RunSummary summary;
  summary.reports.resize(1);
  const RunPace on_real_processes = pace_of(resolved(named), summary, 0);
  ASSERT_TRUE(on_real_processes.link && on_real_processes.host_link);
  EXPECT_DOUBLE_EQ(on_real_processes.host_link->of_workers, 7.0 / 8);
  EXPECT_TRUE(on_real_processes.has_colocated_servers);
  // 2 spare servers: 6 / 76 of all on each worker's host and 14 / 76 on theirs, whose links are as full.
  named.spare_servers = 2;
  const RunPace spare = pace_of(resolved(named), summary, 0);
  ASSERT_TRUE(spare.host_link);
  EXPECT_NEAR(spare.host_link->of_workers + spare.host_link->of_servers * 8 / 10, 8 * 14.0 / 76, 1e-12);
  ASSERT_EQ(spare.server_parts.size(), 10u);
  EXPECT_DOUBLE_EQ(spare.server_parts.front(), 6.0 / 76);
  EXPECT_DOUBLE_EQ(spare.server_parts.back(), 14.0 / 76);
  // Two servers apart, each of which all 8 workers reach; of the workers' hosts, a link carries 2 of them.
  const RunPace apart = pace_on("s0:0,s1:0,a:2,b:2,c:2,d:2", 2);
  ASSERT_TRUE(apart.host_link);
  EXPECT_DOUBLE_EQ(apart.host_link->of_workers, 0);
  EXPECT_DOUBLE_EQ(apart.host_link->of_servers, 1);
  EXPECT_FALSE(pace_on("s0:0,s1:0,a,b,c,d,e,f,g,h", 2).host_link) << "every process has a link of its own";
  EXPECT_TRUE(pace_on("s0:0,s1:0,a,b,c,d,e,f,g,h", 2).link);
  EXPECT_DOUBLE_EQ(pace_on("4x2", 0).host_link->of_workers, 1) << "a ring leaves a host once";
  EXPECT_FALSE(pace_on("8x1", 0).host_link);
  const RunPace racks = pace_on("8x1", 0, "racks:2,oversubscription:4");
  EXPECT_EQ(racks.oversubscription, 4);
  EXPECT_TRUE(racks.shares_links);
  EXPECT_FALSE(racks.link);
}

TEST(FinishedPace, KnowsThatAProfileCanBeCompressed) {
  RunRequest profile;
  profile.mode = Mode::kAllreduce;
  profile.workers = 4;
  profile.cluster = ClusterKind::kSimulated;
  profile.model = "profile:resnet50";
  profile.compute = *ComputeModel::parse("100ms");
  EXPECT_THAT(refused_by_run(profile), Contains("backup-workers"));
  EXPECT_THAT(refused_by_run(profile), Not(Contains("compress")));
  EXPECT_THAT(refused_by_run(profile), Not(Contains("bucket-bytes")));
}

}  // namespace
}  // namespace syncopate::experiments
