// TableSteps: one rank's steps of a job with row-sparse tables and a dense tensor, under any strategy, and what plain
// loops make of the same gradients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/optimizer/optimizer.h"
#include "common/sync_strategy.h"

namespace syncopate::testing_support {

// Two tables of so many rows, and a dense tensor.
ParamLayout table_layout(std::int64_t rows);

class TableSteps {
 public:
  static constexpr std::uint64_t kSeed = 21;  // of the tables' first values

  // Allocates, restores `state` unless it is null, and joins. Rank 0 is the chief.
  TableSteps(SyncStrategy& strategy, int rank, std::int64_t rows, const TrainingState* state = nullptr);

  // Makes a step with gradients of its own, of very different sizes, so that sums depend on their order.
  SyncStats step(std::int64_t number);

  // What ranks have made in so many steps: the bits of loops over the ranks, in their order.
  void expect_rows(int ranks, std::int64_t steps, const OptimizerConfig& rule);
  void expect_dense(int ranks, std::int64_t steps, const OptimizerConfig& rule) const;

 private:
  std::vector<float> read(std::size_t table, RowKeys keys);

  SyncStrategy& strategy_;
  const int rank_;
  const std::size_t rows_;
  const ParamLayout layout_;
  ParamArenas arenas_;
  std::size_t dense_buckets_ = 0;  // those of the two tables follow
};

}  // namespace syncopate::testing_support
