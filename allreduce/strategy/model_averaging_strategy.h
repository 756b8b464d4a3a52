// ModelAveragingStrategy: workers that make steps of their own, with their own optimizers, and every `period` steps go
// on from the mean of the weights that they have come to: local SGD (McMahan et al. 2017, "Communication-efficient
// learning of deep networks from decentralized data", algorithm 1; Stich 2019, "Local SGD converges fast and
// communicates little", algorithm 1). A step without a meeting waits for nobody and sends nothing.
//
// Under gossip a meeting is one of pairs, drawn anew each time: a worker and its partner go on from the mean of their
// two (gossip_pairs.h). It moves less and waits for one worker alone; the mean of all weights is kept, and what they
// are apart shrinks by a factor from meeting to meeting. This is D-PSGD (Lian et al. 2017, "Can decentralized
// algorithms outperform centralized algorithms?", algorithm 1) with a drawn matching for its fixed graph, and with the
// step before the mean, where the paper takes the mean first and then applies the gradient. It is synchronous: partners
// meet after the same step, so that a slow worker holds up whoever is drawn with it. AD-PSGD (Lian et al. 2018,
// "Asynchronous decentralized parallel stochastic gradient descent"), where nobody waits, is another algorithm.
//
// What an optimizer remembers stays with its worker, and between meetings the weights do: each worker saves and
// restores its own, and a job goes on with as many workers as it was saved with, all of them from the same step.
// leave() is the last meeting, of all (Zinkevich et al. 2010, "Parallelized stochastic gradient descent", is that one
// alone); after it all hold the same weights, bit by bit.
#pragma once

#include <cstdint>
#include <optional>

#include "allreduce/collective.h"
#include "allreduce/collective/collective_activity.h"
#include "common/optimizer/optimizer.h"
#include "common/os/aligned_buffer.h"
#include "common/sync_strategy.h"

namespace syncopate::allreduce {

struct ModelAveragingOptions {
  OptimizerConfig optimizer;
  std::int64_t period = 1;                      // steps from one meeting to the next; at least 1
  std::optional<std::uint64_t> gossip_seed;     // meetings are of pairs drawn from it; empty: of all
  Duration timeout = std::chrono::seconds(30);  // of every wait
  CollectiveActivity* activity = nullptr;  // told of what all ranks do together; may be null, outlives the strategy
};

class ModelAveragingStrategy final : public SyncStrategy {
 public:
  // `collective` and `clock` outlive the strategy.
  ModelAveragingStrategy(Collective& collective, const ModelAveragingOptions& options, const Clock& clock);

  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  // A step that has failed cannot be undone: save then fails with invalid argument, as does restore with the state of
  // another number of workers.
  Status restore(const TrainingState& state) override;
  Status save(TrainingState& state) const override;
  std::int64_t first_step() const override { return first_step_; }
  // Invalid argument, saying whose layout differs, if they are not the same, and where not all go on from one step. One
  // bucket: nothing is sent meanwhile.
  Result<std::vector<Range>> join() override;
  void begin_step(const StepContext& step) override {
    step_ = step;
    whole_ = false;
  }
  void gradient_ready(std::size_t /*bucket*/) override {}
  // Of a step with a meeting, all communication is exposed.
  Result<SyncStats> finish_step() override;
  Status leave() override;
  // The mean of all, just after a meeting; under gossip, where nobody has it before leave(), this worker's own.
  JobWeights job_weights() const override {
    return {.are_there = options_.gossip_seed.has_value() || steps_alone_ == 0};
  }

 private:
  using Stage = CollectiveOperation::Stage;

  TimePoint deadline() const { return clock_.now() + options_.timeout; }
  // That all train the same, and go on from the same step.
  Status agree();
  Status meet();
  Status average_with_all(Stage stage);

  Collective& collective_;
  const ModelAveragingOptions options_;
  Optimizer optimizer_;
  const Clock& clock_;
  ParamLayout layout_;
  std::span<float> weights_;  // the collective's memory
  AlignedBuffer gradients_;
  std::optional<OptimizerState> state_;
  StepContext step_;
  std::int64_t steps_alone_ = 0;  // since the last meeting
  std::int64_t meetings_ = 0;
  bool restored_ = false;
  bool whole_ = true;  // no step is under way, nor has one failed
  std::int64_t first_step_ = 0;
  std::int64_t steps_done_ = 0;
};

}  // namespace syncopate::allreduce
