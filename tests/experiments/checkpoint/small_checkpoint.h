// A small checkpoint with all that there can be: weights in several shards, a table, residuals, a local state.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/os/whole_file.h"
#include "experiments/checkpoint/checkpoint.h"
#include "experiments/checkpoint/checkpoint_store.h"
#include "experiments/checkpoint/part_writer.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {

inline ParamLayout small_layout() {
  ParamLayout layout;
  layout.add_table("embedding", 1000, 4, {.rows_a_step = 8, .limit = 0.1f});
  layout.add("dense.weight", {7, 9});  // padding behind it
  layout.add("dense.bias", {9});
  return layout;
}

inline ParamLayout small_local_layout() {
  ParamLayout layout;
  layout.add("norm.mean", {5});
  return layout;
}

inline StateForms small_forms() { return {small_layout(), small_local_layout()}; }

// Zero in padding, as arenas are.
inline float small_value(std::size_t element, float scale) {
  const ParamLayout layout = small_layout();
  for (const TensorSpec& tensor : layout.tensors()) {
    if (element >= tensor.range.begin && element < tensor.range.end) return scale * static_cast<float>(element + 1);
  }
  return 0;
}

inline void put(TrainingState& state, const std::string& name, Range range, float scale) {
  std::vector<float> values;
  for (std::size_t i = range.begin; i < range.end; ++i) values.push_back(small_value(i, scale));
  state.put(name, range.begin, values);
}

// What shard `shard` of two has.
inline TrainingState small_shard(int shard) {
  const Range dense = small_layout().dense();
  const std::size_t middle = dense.begin + 16;
  const Range range = shard == 0 ? Range{dense.begin, middle} : Range{middle, dense.end};
  TrainingState state;
  state.step = 40 + shard;
  put(state, state_part::kWeights, range, 1);
  put(state, state_part::kOptimizer[0], range, -1);
  const RowKey key = static_cast<RowKey>(shard);
  state.rows[0] = {
      .row_floats = 4, .keys = {key + 4, key + 6}, .values = {1.0f + static_cast<float>(key), 2, 3, 4, 5, 6, 7, 8}};
  state.counts["chunk@" + std::to_string(range.begin)] = {shard, -7};
  return state;
}

inline TrainingState small_worker(int rank) {
  TrainingState state;
  state.step = 41;
  put(state, state_part::residual_of(rank), small_layout().dense(), 0.5f);
  state.put(state_part::local_state_of(rank), 0, std::vector<float>{1, 2, 3, 4, static_cast<float>(rank)});
  state.put("factors", 3, std::vector<float>{8, 9});
  state.counts["draws"] = {rank};
  return state;
}

inline StoredPart written(const PartOptions& options, const TrainingState& state) {
  Result<StoredPart> part = write_part(options, small_forms(), state);
  EXPECT_TRUE(part.ok()) << part.status().message();
  return part.ok() ? std::move(*part) : StoredPart();
}

struct SmallOptions {
  int keep = 9;
  Digests digests = Digests::kNo;
  const CheckpointKey* key = nullptr;
  bool is_finite = true;  // else one value of what worker 1 has is NaN
};

// Writes a complete checkpoint of two servers and two workers to `store`.
inline Manifest write_small_checkpoint(CheckpointStore& store, std::int64_t step, const SmallOptions& options = {}) {
  const std::string folder = store.folder() + "/" + attempt_name(step, 0);
  EXPECT_TRUE(make_folder(folder).ok());
  Manifest manifest{.run = "a-run", .step = step, .facts = {{"model", "small"}}};
  for (int i = 0; i < 2; ++i) {
    manifest.parts.push_back(written(
        {.folder = folder, .writer = "shard-" + std::to_string(i), .digests = options.digests}, small_shard(i)));
  }
  for (int i = 0; i < 2; ++i) {
    TrainingState state = small_worker(i);
    if (i == 1 && !options.is_finite) state.put("velocity.worker1", 5, std::vector<float>{1, NAN, 3});
    manifest.parts.push_back(written({.folder = folder,
                                      .writer = "worker-" + std::to_string(i),
                                      .share = i == 0 ? Share::kAll : Share::kOwnOnly,
                                      .digests = options.digests},
                                     state));
  }
  const Status status = store.complete(manifest, 0, options.key);
  store.tidy(step, 0, options.keep);
  EXPECT_TRUE(status.ok()) << status.message();
  return manifest;
}

// Returns the checksum of a block of `content`, a file of values that have a layout.
inline std::uint64_t small_block_checksum(const std::string& content, const StoredFile& file,
                                          const StoredBlock& block) {
  Checksum checksum;
  for (const ArenaForm::Stretch& stretch : small_forms().form_of(file.part)->stretches(block.range)) {
    checksum.add(std::as_bytes(std::span(content)).subspan(stretch.offset, stretch.range.size() * sizeof(float)));
  }
  return checksum.value();
}

inline std::vector<float> all_of(const TrainingState& state, const std::string& name, Range range) {
  std::vector<float> values(range.size());
  const Status status = state.read(name, range, values);
  EXPECT_TRUE(status.ok()) << status.message();
  return values;
}

inline std::vector<float> small_values(Range range, float scale) {
  std::vector<float> values;
  for (std::size_t i = range.begin; i < range.end; ++i) values.push_back(small_value(i, scale));
  return values;
}

}  // namespace syncopate::experiments
