// Of a model with row-sparse tables, the rows that a snapshot is to hold: those that the test set touches, so that it
// can be evaluated without the tables; at the end all that were ever touched, as far as they are few enough to be kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/sync_strategy.h"
#include "experiments/cluster/control/snapshot_layout.h"
#include "worker/data/dataset.h"
#include "worker/model.h"

namespace syncopate::experiments {

// The most that the values of a snapshot's rows may take: they go through the coordinator to the evaluator.
inline constexpr std::size_t kMostSnapshotBytes = std::size_t{1} << 30;
// The most of all touched rows that is kept at the end.
inline constexpr std::size_t kMostKeptBytes = std::size_t{1} << 28;

// What the values of these rows take.
std::size_t bytes_of_rows(const ParamLayout& layout, const TableKeys& rows);

// By table, the rows that any sample of `test` touches; none for a model without tables. Invalid argument where they
// take more than kMostSnapshotBytes. The model's rows of the last batch are forgotten.
Result<TableKeys> test_rows(worker::Model& model, const worker::Dataset& test);

struct RowsToKeep {
  TableKeys rows;
  std::string note;  // why these are not all that have been touched; empty where they are
};
// The test's rows, and all others that have been touched if that is no more than `most_bytes`.
Result<RowsToKeep> rows_to_keep(const ParamLayout& layout, const TableKeys& test, SyncStrategy& strategy,
                                std::size_t most_bytes = kMostKeptBytes);

// The values of a snapshot with these rows, as snapshot_layout lays them out. `weights` is the model's arena.
Result<std::vector<float>> snapshot_values(const ParamLayout& layout, const TableKeys& rows,
                                           std::span<const float> weights, SyncStrategy& strategy);

}  // namespace syncopate::experiments
