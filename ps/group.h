// PsGroup: the ranks of a parameter-server job. Pure.
//
// Members 0 .. workers-1 are the workers; the chief is the lowest one present. The shards follow, numbered over all
// servers: shard s belongs to server s / shards_per_server. The last servers may have another number: spare ones beside
// colocated ones (docs/colocated.md) have more of the weights, and a wire is shared by its connections. With standbys
// the same number of members follows in the same order: each shard then has two replicas, of which one or both serve it
// (ps/README.md, "Replication").
//
// Where workers train parts of a model (the stages of pipelines), each part has as many shards on every server, those
// of one part after those of the other. A group is seen from one part: its shards are counted from 0, and only those of
// its members are known that are its shards.
#pragma once

#include <cstddef>

namespace syncopate::ps {

inline constexpr int kChief = 0;
inline constexpr int kMostShardsPerServer = 64;

// The most tables of a layout. For each table a pull and a push to a shard may be in flight, besides a window of
// chunks; together they must be fewer messages than a wire's inbox holds.
inline constexpr std::size_t kMostTables = 15;

struct PsGroup {
  int workers = 1;
  int servers = 1;
  int shards_per_server = 1;  // of each part
  int replicas = 0;           // standbys of each shard: 0 or 1
  int parts = 1;              // of the model
  int part = 0;
  int spare_servers = 0;     // of the servers, the last ones
  int shards_per_spare = 0;  // of each of them

  int shards_of_others() const { return (servers - spare_servers) * shards_per_server; }
  int shards() const { return shards_of_others() + spare_servers * shards_per_spare; }
  int all_shards() const { return parts * shards(); }
  int size() const { return workers + (1 + replicas) * all_shards(); }
  bool is_worker(int rank) const { return rank >= 0 && rank < workers; }
  // Returns the number of the shard among those of all parts, by which people know it.
  int number_of_shard(int shard) const { return part * shards() + shard; }
  int rank_of_shard(int shard) const { return workers + number_of_shard(shard); }
  int rank_of_standby(int shard) const { return workers + all_shards() + number_of_shard(shard); }
  // Returns the shard that has a replica at member `rank`, or -1 for none.
  int shard_of_rank(int rank) const {
    if (rank < workers || rank >= size()) return -1;
    const int shard = (rank - workers) % all_shards() - part * shards();
    return shard >= 0 && shard < shards() ? shard : -1;
  }
  // Returns the rank of the other replica of a shard that has a standby.
  int other_replica_of(int rank) const {
    const int shard = shard_of_rank(rank);
    return rank == rank_of_shard(shard) ? rank_of_standby(shard) : rank_of_shard(shard);
  }
  int server_of_shard(int shard) const {
    const int behind = shard - shards_of_others();
    return behind < 0 ? shard / shards_per_server : servers - spare_servers + behind / shards_per_spare;
  }
  int shards_of_server(int server) const {
    return server < servers - spare_servers ? shards_per_server : shards_per_spare;
  }
  int first_shard_of(int server) const {
    const int spare = server - (servers - spare_servers);
    return spare < 0 ? server * shards_per_server : shards_of_others() + spare * shards_per_spare;
  }
};

}  // namespace syncopate::ps
