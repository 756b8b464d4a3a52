// Which rows of row-sparse tables a snapshot contains: those that the test set uses, so that it can be evaluated
// without the tables; at the end all that were ever touched, if they are few enough.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/sync_strategy.h"
#include "experiments/cluster/control/weights_snapshot.h"
#include "worker/data/dataset.h"
#include "worker/model.h"

namespace syncopate::experiments {

// The largest size of a snapshot's rows, which are sent through the coordinator to the evaluator.
inline constexpr std::size_t kMostSnapshotBytes = std::size_t{1} << 30;
// The largest size of all touched rows that are kept at the end.
inline constexpr std::size_t kMostKeptBytes = std::size_t{1} << 28;

// Returns the size of the values of these rows, in bytes.
std::size_t bytes_of_rows(const ParamLayout& layout, const TableKeys& rows);

// Returns, for each table, the rows that any sample of `test` uses; none for a model without tables. Fails with invalid
// argument if they take more than kMostSnapshotBytes. The model's rows of the last batch are forgotten.
Result<TableKeys> test_rows(worker::Model& model, const worker::Dataset& test);

// Returns, for each table, how many rows a batch of `train` touches: the mean over a few batches that are drawn from
// all of it, the same on every worker. The model's rows of the last batch are forgotten.
std::vector<double> rows_a_step(worker::Model& model, const worker::Dataset& train);

struct RowsToKeep {
  TableKeys rows;
  std::string note;  // why these are not all that have been touched; empty if they are
};
// Returns the test's rows, and all others that have been touched if that is no more than `most_bytes`.
Result<RowsToKeep> rows_to_keep(const ParamLayout& layout, const TableKeys& test, SyncStrategy& strategy,
                                std::size_t most_bytes = kMostKeptBytes);

// Returns the values of a snapshot with these rows, as snapshot_layout lays them out. `weights` is the model's arena.
Result<std::vector<float>> snapshot_values(const ParamLayout& layout, const TableKeys& rows,
                                           std::span<const float> weights, SyncStrategy& strategy);

}  // namespace syncopate::experiments
