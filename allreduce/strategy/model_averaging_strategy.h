// ModelAveragingStrategy: workers make steps of their own, with their own optimizers, and every `period` steps go on
// from the mean of their weights: local SGD (McMahan et al. 2017, "Communication-efficient learning of deep networks
// from decentralized data", algorithm 1; Stich 2019, "Local SGD converges fast and communicates little", algorithm 1).
// A step without a meeting waits for nobody and sends nothing.
//
// Under gossip a meeting is between pairs, drawn anew each time: a worker and its partner go on from the mean of their
// two (gossip_pairs). It sends less and waits for only one worker; the mean of all weights is preserved, and the
// distance between them shrinks by a factor from meeting to meeting. This is D-PSGD (Lian et al. 2017, "Can
// decentralized algorithms outperform centralized algorithms?", algorithm 1) with a drawn matching for its fixed graph,
// and with the step before the mean, whereas the paper takes the mean first and then applies the gradient. It is
// synchronous: partners meet after the same step, so a slow worker holds up the partner drawn for it. AD-PSGD (Lian et
// al. 2018, "Asynchronous decentralized parallel stochastic gradient descent"), in which nobody waits, is another
// algorithm.
//
// Meetings of all may be more than means: see OuterMeetings. The last one, of leave(), is a mean of whole weights.
//
// The optimizer's state stays with its worker, and so do the weights between meetings: each worker saves and restores
// its own, and a job goes on with as many workers as it was saved with, all of them from the same step. leave() is the
// last meeting, of all (Zinkevich et al. 2010, "Parallelized stochastic gradient descent", has only that one); after it
// all hold the same weights, bit by bit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "allreduce/collective.h"
#include "allreduce/collective/collective_activity.h"
#include "allreduce/strategy/outer_meetings.h"
#include "common/optimizer/optimizer.h"
#include "common/os/aligned_buffer.h"
#include "common/sync_strategy.h"

namespace syncopate::allreduce {

// Returns the partner of each rank in round `round`; a rank's own number if it stays alone, as one rank does in a group
// of odd size. Pairs are drawn anew each round, with every matching of the ranks equally likely, so that what one rank
// has reaches all: randomized gossip (Boyd et al. 2006, "Randomized gossip algorithms"), in synchronous rounds of one
// matching each, as MATCHA activates matchings of a graph (Wang et al. 2019, "MATCHA: Speeding up decentralized SGD via
// matching decomposition sampling"); ours are of the complete graph.
std::vector<int> gossip_pairs(std::uint64_t seed, std::int64_t round, int size);

struct ModelAveragingOptions {
  OptimizerConfig optimizer;
  std::int64_t period = 1;                      // steps from one meeting to the next; at least 1
  std::optional<std::uint64_t> gossip_seed;     // seeds the pairs of meetings; empty: meetings are of all
  OuterOptions outer;                           // of meetings of all
  Duration timeout = std::chrono::seconds(30);  // for each wait
  CollectiveActivity* activity = nullptr;       // records the operations of all ranks; may be null, must outlive it
};

class ModelAveragingStrategy final : public SyncStrategy, public Resumable {
 public:
  // `collective` and `clock` must outlive the strategy.
  ModelAveragingStrategy(Collective& collective, const ModelAveragingOptions& options, const Clock& clock);

  Resumable* resumable() override { return this; }
  // An operation of all ranks if outer has a codec.
  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  // A step that has failed cannot be undone: save then fails with invalid argument. restore fails so with the state of
  // another number of workers.
  Status restore(const TrainingState& state) override;
  Status save(TrainingState& state) const override;
  std::int64_t first_step() const override { return first_step_; }
  // Fails with invalid argument, naming a rank whose layout differs, or if not all go on from one step. Returns one
  // bucket, since nothing is sent during backward.
  Result<std::vector<Range>> join() override;
  void begin_step(const StepContext& step) override {
    step_ = step;
    whole_ = false;
  }
  void gradient_ready(std::size_t /*bucket*/) override {}
  // In a step with a meeting, all communication is exposed, unless outer overlaps it.
  Result<SyncStats> finish_step() override;
  Status leave() override;
  // The mean of all, just after a meeting, or the anchor of outer meetings. Under gossip, where no worker has it before
  // leave(), this worker's own weights.
  JobWeights job_weights() const override {
    if (outer_) return {.values = outer_->anchor()};
    return {.are_there = options_.gossip_seed.has_value() || steps_alone_ == 0};
  }

 private:
  using Stage = CollectiveOperation::Stage;

  TimePoint deadline() const { return clock_.now() + options_.timeout; }
  // Checks that all ranks train the same layout, and go on from the same step.
  Status agree();
  // Meets one other under gossip, or all for the mean of their weights.
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
  std::unique_ptr<OuterMeetings> outer_;  // null where meetings are means, or in pairs
  StepContext step_;
  std::int64_t steps_alone_ = 0;  // since the last meeting
  std::int64_t meetings_ = 0;
  bool restored_ = false;
  bool whole_ = true;  // no step is under way, nor has one failed
  std::int64_t first_step_ = 0;
  std::int64_t steps_done_ = 0;
};

}  // namespace syncopate::allreduce
