#include "experiments/lab/report/sharding_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

ParamLayout two_tensors() {
  ParamLayout layout;
  layout.add("weight", {300, 1024});
  layout.add("bias", {1024});
  return layout;
}

ResolvedRun ps_config(int servers, int shards_per_server, ps::ShardingPolicy policy) {
  ResolvedRun config;
  config.chunk_bytes = 256 * 1024;
  config.mode = Mode::kPs;
  config.servers = servers;
  config.shards_per_server = shards_per_server;
  config.sharding = policy;
  return config;
}

TEST(ShardingReport, HasALineForEachShard) {
  const ShardingReport report = report_sharding(ps_config(2, 1, ps::ShardingPolicy::kTensor), two_tensors());
  EXPECT_EQ(to_text(report),
            "sharding tensor over 2 shards, chunks of at most 262.14 kB, skew 1.99 (largest over mean)\n"
            "  server 0  1.23 MB  5 chunks\n"
            "  server 1  4.10 kB   1 chunk\n");
  EXPECT_EQ(hottest(report), "tensor: server 0 holds 1.99 x the mean");
  EXPECT_TRUE(matters(report));
}

TEST(ShardingReport, NamesShardsBehindTheirServers) {
  const ShardingReport report = report_sharding(ps_config(2, 2, ps::ShardingPolicy::kBalanced), two_tensors());
  EXPECT_THAT(to_text(report), HasSubstr("  server 1, shard 3  308.22 kB  2 chunks\n"));
  EXPECT_FALSE(matters(report));
}

// 4 workers and 2 spare servers: (4 - 2) / (16 + 4) and 2 x 3 / (16 + 4) of all bytes, these on 3 shards each.
TEST(ShardingReport, ComparesWithThePartsThatServersAreToHave) {
  ResolvedRun config = ps_config(6, 1, ps::ShardingPolicy::kBalanced);
  config.workers = 4;
  config.colocated = true;
  config.spare_servers = 2;
  const ShardingReport even = report_sharding(config, two_tensors());
  EXPECT_THAT(to_text(even), HasSubstr("over 10 shards, chunks of at most 262.14 kB, skew 1.00 (fullest over its "
                                       "part)\n  server 0           123.26 kB  1 chunk\n"));
  EXPECT_THAT(to_text(even), HasSubstr("  server 5, shard 9  123.33 kB  1 chunk\n"));
  EXPECT_FALSE(matters(even));
  config.shards_per_server = 64;
  const ShardingReport most = report_sharding(config, two_tensors());
  EXPECT_EQ(most.group.shards_per_spare, 64) << "and no more";
  config.shards_per_server = 1;
  config.sharding = ps::ShardingPolicy::kWhole;
  EXPECT_EQ(hottest(report_sharding(config, two_tensors())), "whole: server 0 holds 9.97 x its part");
}

TEST(ShardingReport, ShowsTheSmallestAndTheLargestOfMany) {
  const ShardingReport report = report_sharding(ps_config(64, 64, ps::ShardingPolicy::kTensor), two_tensors());
  EXPECT_EQ(to_text(report),
            "sharding tensor over 4096 shards, chunks of at most 262.14 kB, skew 4082.39 (largest over mean); the "
            "smallest and the largest:\n"
            "  server 0, shard 2      0 B  0 chunks\n"
            "  server 0, shard 0  1.23 MB  5 chunks\n");
}

}  // namespace
}  // namespace syncopate::experiments
