// LocalStrategy: one worker and nobody to agree with. The whole arena is one bucket; finish_step applies the optimizer.
#pragma once

#include <optional>

#include "common/aligned_buffer.h"
#include "common/clock.h"
#include "common/optimizer.h"
#include "common/sync_strategy.h"

namespace syncopate::worker {

class LocalStrategy final : public SyncStrategy {
 public:
  // The clock must outlive the strategy.
  LocalStrategy(const OptimizerConfig& optimizer, const Clock& clock) : optimizer_(optimizer), clock_(clock) {}

  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  Result<std::vector<Range>> join() override;
  void begin_step(const StepContext& step) override { step_ = step; }
  void gradient_ready(std::size_t /*bucket*/) override {}
  Result<SyncStats> finish_step() override;
  Status leave() override { return {}; }

 private:
  Optimizer optimizer_;
  const Clock& clock_;
  AlignedBuffer weights_;
  AlignedBuffer gradients_;
  std::optional<OptimizerState> state_;  // from allocate on
  StepContext step_;
};

}  // namespace syncopate::worker
