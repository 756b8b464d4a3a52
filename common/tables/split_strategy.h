// SplitStrategy: a step in two exchanges: one strategy has the dense tensors of a layout, another its row-sparse tables
// (Kim et al. 2019, "Parallax: sparsity-aware data parallel training of deep neural networks", section 3: dense
// gradients are summed among the workers, and sparse ones go to servers).
//
//   arena   [ rooms of the tables ][ dense tensors ]     the dense strategy's, which sends from it in place
//               ▲ weights    │ gradients                 copies: a room has the rows of one step
//           [ rooms of the tables ]                      the tables' strategy's
//
// Either strategy trains its part as if it were all. Both must have all workers in each step.
#pragma once

#include <memory>

#include "common/sync_strategy.h"

namespace syncopate {

class SplitStrategy final : public SyncStrategy, public Resumable {
 public:
  SplitStrategy(std::unique_ptr<SyncStrategy> dense, std::unique_ptr<SyncStrategy> tables);

  // Null unless both can be resumed. save() and restore() are those of both.
  Resumable* resumable() override;
  TableReader* table_reader() override { return tables_->table_reader(); }

  // Fails with invalid argument unless the layout has tables and dense tensors.
  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  Status restore(const TrainingState& state) override;
  // Returns the dense strategy's buckets, then the tables'. Fails with data loss if the two would go on with different
  // steps.
  Result<std::vector<Range>> join() override;
  std::int64_t first_step() const override { return dense_->first_step(); }
  void begin_step(const StepContext& step) override;
  void gradient_ready(std::size_t bucket) override;
  void gradients_complete() override;
  // Sums the figures of both. Of `communication`, which may pass at the same time, it gives the longer one.
  Result<SyncStats> finish_step() override;
  Status weights_needed(Range range) override;
  Status weights_needed_again(Range range) override { return dense_->weights_needed_again(range); }
  Status gather_weights(bool wanted) override { return dense_->gather_weights(wanted); }
  Status leave() override;
  Status save(TrainingState& state) const override;

 private:
  std::unique_ptr<SyncStrategy> dense_;
  std::unique_ptr<SyncStrategy> tables_;
  Range rooms_;  // of the arena
  ParamArenas arenas_;
  ParamArenas of_tables_;             // their strategy's, of the rooms
  std::size_t dense_buckets_ = 0;     // those of tables follow
  std::vector<Range> table_buckets_;  // in the order of backward
};

}  // namespace syncopate
