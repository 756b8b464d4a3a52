// ShardState: how a shard keeps in a TrainingState what its chunks and tables count, and how it is found again, also by
// shards that are cut in another way. Pure.
//
// Values lie in parts of the arena: state_part::kWeights and kOptimizer, and the parts named here; rows of tables
// in `rows`. In `counts` there is an entry for each chunk, named for where it begins in the arena, and one for each
// shard's part of a table: so the states of all shards are merged into one by merge_shard, which is what a checkpoint
// holds.
//
// Of a chunk that is cut anew, versions and clocks are the largest of the chunks that it has parts of (where updates
// are made together all are equal): nothing is counted twice, and what a part lacks of one step is not made up for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/param_layout.h"
#include "common/status.h"
#include "common/training_state.h"
#include "ps/policy/membership.h"

namespace syncopate::ps {

namespace shard_part {
inline constexpr const char* kSum = "softsync.sum";          // of gradients that have not made an update yet
inline constexpr const char* kMeanSquare = "mean_square";    // of gradients, for adaptive delay compensation
inline constexpr const char* kMirror = "mirror";             // weights as all workers have them (shard_codec.h)
std::string chunk_at(std::size_t begin);                     // in `counts`
std::string table_on(std::size_t table, std::size_t shard);  // in `counts`
}  // namespace shard_part

// By worker: how many of its pushes have been applied; and whether it was away, so that it has a way to make up for.
struct Clocks {
  std::vector<std::int64_t> pushes;
  std::vector<bool> away;

  explicit Clocks(int workers) : pushes(static_cast<std::size_t>(workers)), away(pushes.size()) {}
};

// The clocks that the workers of a job go on with: a live one that was away takes up where the slowest of the others
// is, if that is further than it had come, so that nobody waits for what it has missed.
std::vector<std::int64_t> clocks_to_go_on_with(const Clocks& clocks, const Membership& members);

struct ChunkCounts {
  std::int64_t version = 0;
  // Of softsync's sum.
  std::int64_t summed = 0;
  float summed_weight = 0;
  float summed_rate = 0;
  // Of the mean staleness.
  std::int64_t staleness_count = 0;
  double staleness = 0;
  Clocks clocks{0};
};

void put_chunk_counts(std::size_t begin, const ChunkCounts& counts, TrainingState& state);

// Of the chunk `range` in a job of `workers`, where a worker pushes every `period` steps. A state that no shard has
// made (of a job without servers, say) counts a push of each worker for each period of its steps. Data loss where it
// counts what cannot be counted: pushes without end, a sum that is no number.
Result<ChunkCounts> chunk_counts(Range range, int workers, std::int64_t period, const TrainingState& state);

// Pushes that every chunk and table that `counts` tells of has applied, of all workers, where so many make an update.
// None where it tells of none.
std::optional<std::int64_t> pushes_applied(const std::map<std::string, std::vector<std::int64_t>>& counts,
                                           int pushes_an_update);

// Softsync's sum over `range` into `sum`, which has only zeros: as many gradients' worth as chunk_counts says.
Status read_sum(Range range, float summed_weight, std::span<float> sum, const TrainingState& state);

struct TableCounts {
  std::int64_t version = 0;
  Clocks clocks{0};
};

void put_table_counts(std::size_t table, std::size_t shard, std::size_t shards, const TableCounts& counts,
                      TrainingState& state);
// Of shard `shard` of `shards`: its own, if there were as many. Data loss as above.
Result<TableCounts> table_counts(std::size_t table, std::size_t shard, std::size_t shards, int workers,
                                 const TrainingState& state);

// Adds a shard's state to that of others. Its rows come to theirs, which are of other keys; `step` becomes the least.
void merge_shard(const TrainingState& shard, TrainingState& all);

}  // namespace syncopate::ps
