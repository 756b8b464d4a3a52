#include "experiments/checkpoint/run_facts.h"

#include <gtest/gtest.h>

#include "ps/server/shard_state.h"

namespace syncopate::experiments {
namespace {

// Returns the part of a shard that has two chunks.
StoredPart shard(const std::string& writer, std::int64_t first, std::int64_t second, std::int64_t summed = 0) {
  TrainingState state;
  ps::ChunkCounts counts{.version = first, .summed = summed, .clocks = ps::Clocks(2)};
  ps::put_chunk_counts(0, counts, state);
  counts.version = second;
  ps::put_chunk_counts(100, counts, state);
  return {.writer = writer, .counts = {state.counts.begin(), state.counts.end()}};
}

ResolvedRun config_of(const std::string& consistency) {
  ResolvedRun config;
  config.mode = Mode::kPs;
  config.workers = 4;
  config.consistency = *ps::Consistency::parse(consistency);
  return config;
}

TEST(WorkDone, IsWhatEveryChunkHasLearntFrom) {
  const Manifest manifest{.step = 9, .parts = {shard("shard-0", 40, 41), shard("shard-1", 42, 39)}};
  EXPECT_EQ(batches_done(manifest, config_of("async")), 39);
  EXPECT_EQ(batches_done(manifest, config_of("bounded:2")), 39);
  EXPECT_EQ(batches_done(manifest, config_of("easgd:5")), 39 * 5) << "each push after five batches";
}

TEST(WorkDone, CountsWhatAnUpdateIsTheMeanOf) {
  const Manifest manifest{.step = 9, .parts = {shard("shard-0", 20, 20, 1)}};
  EXPECT_EQ(batches_done(manifest, config_of("softsync:2")), 20 * 2 + 1) << "with what is in the sum";
}

TEST(WorkDone, CountsABatchOfEachWorkerForAnUpdateOfATableByAll) {
  StoredPart part = shard("shard-0", 20, 20);
  TrainingState state;
  ps::put_table_counts(0, 0, 1, {.version = 20, .clocks = ps::Clocks(4)}, state);
  part.counts.insert(state.counts.begin(), state.counts.end());
  const Manifest manifest{.step = 20, .parts = {part}};
  EXPECT_EQ(batches_done(manifest, config_of("sync")), 20 * 4);
  EXPECT_EQ(batches_done(manifest, config_of("async")), 20);
}

TEST(WorkDone, GoesByTheStepWhereNoShardHasCounted) {
  EXPECT_EQ(batches_done({.step = 9, .parts = {{.writer = "worker-0"}}}, config_of("async")), 36);
  EXPECT_EQ(batches_done({.step = 9, .parts = {shard("shard-0", -5, -5)}}, config_of("async")), 36)
      << "what cannot be counted";
}

}  // namespace
}  // namespace syncopate::experiments
