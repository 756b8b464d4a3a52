// LocalStrategy: a single worker, which synchronises with nobody. The whole arena is one bucket; finish_step applies
// the optimizer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "common/optimizer/optimizer.h"
#include "common/os/aligned_buffer.h"
#include "common/sync_strategy.h"
#include "common/tables/row_table.h"
#include "common/trace/tracer.h"

namespace syncopate::worker {

class LocalStrategy final : public SyncStrategy, public Resumable, public TableReader {
 public:
  // The clock and the tracer, which may be null, must outlive the strategy. `seed` seeds the first values of rows of
  // tables. `leaves_out`: a step that is marked (common/left_out_step.h) makes no update.
  LocalStrategy(const OptimizerConfig& optimizer, const Clock& clock, std::uint64_t seed = 1, Tracer* tracer = nullptr,
                bool leaves_out = false)
      : optimizer_(optimizer), clock_(clock), seed_(seed), tracer_(tracer), leaves_out_(leaves_out) {}

  Resumable* resumable() override { return this; }
  TableReader* table_reader() override { return this; }
  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  Status restore(const TrainingState& state) override;
  Result<std::vector<Range>> join() override;
  std::int64_t first_step() const override { return first_step_; }
  void begin_step(const StepContext& step) override;
  void gradient_ready(std::size_t /*bucket*/) override {}
  Result<SyncStats> finish_step() override;
  Status weights_needed(Range /*range*/) override { return rows_; }
  Status leave() override { return {}; }
  Status save(TrainingState& state) const override;
  Status read_rows(std::size_t table, RowKeys keys, std::span<float> values) override;
  Result<std::vector<RowKey>> touched_rows(std::size_t table) override { return tables_[table].keys(); }

 private:
  Optimizer optimizer_;
  const Clock& clock_;
  const std::uint64_t seed_;
  Tracer* const tracer_;
  const bool leaves_out_;
  ParamLayout layout_;
  AlignedBuffer weights_;
  AlignedBuffer gradients_;
  std::optional<OptimizerState> state_;  // of the dense part; from allocate on
  std::vector<RowTable> tables_;
  Status rows_;  // result of reading them
  StepContext step_;
  std::int64_t first_step_ = 0;
  std::int64_t steps_done_ = 0;
};

}  // namespace syncopate::worker
