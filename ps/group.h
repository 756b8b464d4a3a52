// PsGroup: who is who among the endpoints of a parameter-server job. Pure.
//
// Members 0 .. workers-1 are the workers, the chief the lowest that is there; behind them come the shards, numbered
// over all servers: shard s belongs to server s / shards_per_server. With standbys there are as many again, in the same
// order: each shard has two homes, of which one or both serve it (ps/README.md, "Replication").
#pragma once

#include <cstddef>

namespace syncopate::ps {

inline constexpr int kChief = 0;

// The most tables of a layout: of each a pull and a push may be under way to a shard, beside a window of chunks, and
// all together are fewer messages than a wire's inbox holds.
inline constexpr std::size_t kMostTables = 15;

struct PsGroup {
  int workers = 1;
  int servers = 1;
  int shards_per_server = 1;
  int replicas = 0;  // standbys of each shard: none or one

  int shards() const { return servers * shards_per_server; }
  int size() const { return workers + (1 + replicas) * shards(); }
  bool is_worker(int rank) const { return rank >= 0 && rank < workers; }
  int rank_of_shard(int shard) const { return workers + shard; }
  int rank_of_standby(int shard) const { return workers + shards() + shard; }
  // The shard that has a home at member `rank`, or -1 if none has.
  int shard_of_rank(int rank) const { return rank >= workers && rank < size() ? (rank - workers) % shards() : -1; }
  // The other home of a shard with standby.
  int other_home_of(int rank) const {
    const int shard = shard_of_rank(rank);
    return rank == rank_of_shard(shard) ? rank_of_standby(shard) : rank_of_shard(shard);
  }
  int server_of_shard(int shard) const { return shard / shards_per_server; }
};

}  // namespace syncopate::ps
