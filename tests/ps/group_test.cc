#include "ps/group.h"

#include <gtest/gtest.h>

#include <set>

namespace syncopate::ps {
namespace {

// From whichever part it is seen, each member is a worker or a shard of one part.
TEST(PsGroup, HasEachShardAtARankOfItsOwn) {
  for (const int replicas : {0, 1}) {
    PsGroup group{.workers = 6, .servers = 2, .shards_per_server = 3, .replicas = replicas, .parts = 4};
    std::set<int> ranks, numbers;
    for (group.part = 0; group.part < group.parts; ++group.part) {
      for (int shard = 0; shard < group.shards(); ++shard) {
        EXPECT_EQ(group.shard_of_rank(group.rank_of_shard(shard)), shard);
        EXPECT_EQ(group.server_of_shard(shard), shard / 3);
        ranks.insert(group.rank_of_shard(shard));
        numbers.insert(group.number_of_shard(shard));
        if (replicas == 0) continue;
        EXPECT_EQ(group.shard_of_rank(group.rank_of_standby(shard)), shard);
        EXPECT_EQ(group.other_replica_of(group.rank_of_standby(shard)), group.rank_of_shard(shard));
        EXPECT_EQ(group.other_replica_of(group.rank_of_shard(shard)), group.rank_of_standby(shard));
        ranks.insert(group.rank_of_standby(shard));
      }
    }
    EXPECT_EQ(numbers.size(), 24u);
    EXPECT_EQ(*numbers.rbegin(), 23);
    EXPECT_EQ(ranks.size(), 24u * static_cast<unsigned>(1 + replicas));
    EXPECT_EQ(*ranks.begin(), group.workers);
    EXPECT_EQ(*ranks.rbegin(), group.size() - 1);
  }
}

// Two servers of 2 shards, and two of 3.
TEST(PsGroup, HasOtherNumbersOfShardsOnSpareServers) {
  const PsGroup group{.workers = 2, .servers = 4, .shards_per_server = 2, .spare_servers = 2, .shards_per_spare = 3};
  EXPECT_EQ(group.shards(), 10);
  EXPECT_EQ(group.size(), 12);
  const int servers[] = {0, 0, 1, 1, 2, 2, 2, 3, 3, 3}, firsts[] = {0, 2, 4, 7}, shards[] = {2, 2, 3, 3};
  for (int shard = 0; shard < 10; ++shard) EXPECT_EQ(group.server_of_shard(shard), servers[shard]);
  for (int server = 0; server < 4; ++server) {
    EXPECT_EQ(group.first_shard_of(server), firsts[server]);
    EXPECT_EQ(group.shards_of_server(server), shards[server]);
  }
}

TEST(PsGroup, KnowsNoShardOfAnotherPart) {
  const PsGroup first{.workers = 4, .servers = 2, .parts = 2, .part = 0};
  const PsGroup second{.workers = 4, .servers = 2, .parts = 2, .part = 1};
  for (int rank = 0; rank < first.size(); ++rank) {
    EXPECT_EQ(first.shard_of_rank(rank) >= 0, rank == 4 || rank == 5) << rank;
    EXPECT_EQ(second.shard_of_rank(rank) >= 0, rank == 6 || rank == 7) << rank;
  }
  EXPECT_EQ(first.shard_of_rank(first.size()), -1);
  EXPECT_EQ(first.shard_of_rank(-1), -1);
}

}  // namespace
}  // namespace syncopate::ps
