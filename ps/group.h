// PsGroup: who is who among the endpoints of a parameter-server job. Pure.
//
// Members 0 .. workers-1 are the workers, worker 0 the chief; behind them come the shards, numbered over all servers:
// shard s belongs to server s / shards_per_server.
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

  int shards() const { return servers * shards_per_server; }
  int size() const { return workers + shards(); }
  bool is_worker(int rank) const { return rank >= 0 && rank < workers; }
  int rank_of_shard(int shard) const { return workers + shard; }
  // The shard of member `rank`, or -1 if that is no shard.
  int shard_of_rank(int rank) const { return rank >= workers && rank < size() ? rank - workers : -1; }
  int server_of_shard(int shard) const { return shard / shards_per_server; }
};

}  // namespace syncopate::ps
