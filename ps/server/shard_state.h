// ShardState: how a shard stores the counts of its chunks and tables in a TrainingState, and reads them back, also for
// shards that are cut differently. Pure.
//
// Values lie in parts of the arena: state_part::kWeights and kOptimizer, and the parts named here; rows of tables lie
// in `rows`. `counts` has an entry for each chunk, named for where it begins in the arena, and one for each shard's
// part of a table. So merge_shard can merge the states of all shards into one, which is what a checkpoint holds.
//
// For a chunk that is cut differently, versions and clocks are the largest of the chunks that it overlaps (if updates
// are made together all are equal). So nothing is counted twice, and what a part lacks of one step is not made up for.
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

// By worker, how many of its pushes have been applied, and whether it was away, so that it has to catch up.
struct Clocks {
  std::vector<std::int64_t> pushes;
  std::vector<bool> away;

  explicit Clocks(int workers) : pushes(static_cast<std::size_t>(workers)), away(pushes.size()) {}
};

// Returns the clocks that the workers of a job go on with. A live worker that was away takes the clock of the slowest
// of the others, if that is further than its own, so that nobody waits for what it has missed.
std::vector<std::int64_t> clocks_to_go_on_with(const Clocks& clocks, const Membership& members);

struct ChunkCounts {
  std::int64_t version = 0;
  // The sum of softsync.
  std::int64_t summed = 0;
  float summed_weight = 0;
  float summed_rate = 0;
  // The mean staleness.
  std::int64_t staleness_count = 0;
  double staleness = 0;
  Clocks clocks{0};
};

void put_chunk_counts(std::size_t begin, const ChunkCounts& counts, TrainingState& state);

// Reads the counts of the chunk `range` in a job of `workers` where a worker pushes every `period` steps. A state that
// no shard has made (of a job without servers, say) counts a push of each worker for each period of its steps. Fails
// with data loss if a count is invalid, such as an impossible number of pushes, or a sum that is not a number.
Result<ChunkCounts> chunk_counts(Range range, int workers, std::int64_t period, const TrainingState& state);

// Returns the number of pushes, over all workers, that every chunk and table in `counts` has applied, where
// `pushes_an_update` make an update. Empty if `counts` names no chunk or table.
std::optional<std::int64_t> pushes_applied(const std::map<std::string, std::vector<std::int64_t>>& counts,
                                           int pushes_an_update);

// Reads softsync's sum over `range` into `sum`, which must hold zeros. `summed_weight` is that of chunk_counts.
Status read_sum(Range range, float summed_weight, std::span<float> sum, const TrainingState& state);

struct TableCounts {
  std::int64_t version = 0;
  Clocks clocks{0};
};

void put_table_counts(std::size_t table, std::size_t shard, std::size_t shards, const TableCounts& counts,
                      TrainingState& state);
// Returns how many updates each shard of a table has made, as far as the state tells: none, of a run without servers.
std::vector<std::int64_t> table_updates(std::size_t table, const TrainingState& state);
// Reads the counts of shard `shard` of `shards`: its own, if the state is of as many shards. Fails with data loss as
// above.
Result<TableCounts> table_counts(std::size_t table, std::size_t shard, std::size_t shards, int workers,
                                 const TrainingState& state);

// Adds a shard's state to that of others. Its rows, which have other keys, are added to theirs; `step` becomes the
// least.
void merge_shard(const TrainingState& shard, TrainingState& all);

}  // namespace syncopate::ps
