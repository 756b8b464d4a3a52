// LocalStepsStrategy: a worker that makes steps of its own, with its own optimizer, and meets the others through the
// servers every `period` steps. A step without a meeting waits for nobody and sends nothing.
//
//   local-sgd  It pushes how far it has come from the weights that it was given last, b - x, and the shards apply the
//              mean of that as a gradient, with sgd and a rate of 1: b - mean(b - x) = mean(x) is what all go on from
//              (the "pseudo-gradient" of Reddi et al. 2021, "Adaptive federated optimization", section 2).
//   easgd      A meeting is part of the step that follows `period` others (Zhang, Choromanska and LeCun 2015, algorithm
//              1): with the weights x from before that step and d = alpha (x - c), the center moves to c' = c + d, and
//              the worker to x - d - rate · g(x), whose gradient is that of x, too. The worker pushes x; a shard
//              answers c', and the worker's move needs no more: x - c' = (1 - alpha) (x - c), so that d = alpha /
//              (1 - alpha) (x - c'). In the very first step nothing has moved, and nobody meets.
//
// What an optimizer remembers stays with the worker from one meeting to the next. leave() is the last meeting, if steps
// have been made since the last one (under easgd the beginning of the step that would follow); after it all hold the
// servers' weights: the mean, or the center.
//
// A worker that goes on in another generation keeps its own weights, and what its optimizer remembers, if the servers
// are where it has met them last. A meeting that was broken off is finished in join(), chunk by chunk: what a shard has
// applied is not pushed again. If the servers are elsewhere (they went back to a checkpoint, say), it goes on from
// theirs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/optimizer/optimizer.h"
#include "common/os/aligned_buffer.h"
#include "common/sync_strategy.h"
#include "ps/client/ps_strategy.h"

namespace syncopate::ps {

struct LocalStepsOptions {
  OptimizerConfig optimizer;
  std::int64_t period = 1;            // steps from one meeting to the next; at least 1
  std::optional<float> elastic_rate;  // easgd's alpha, above 0 and below 1; empty under local-sgd
};

class LocalStepsStrategy final : public SyncStrategy {
 public:
  // `servers` pushes and pulls, with no step under way when its finish_step returns. `worker` is whose own this is in a
  // state. `clock` outlives this object.
  LocalStepsStrategy(const LocalStepsOptions& options, std::unique_ptr<PsStrategy> servers, const Clock& clock,
                     int worker = 0);

  // The gradients are also what is sent: one more arena than the servers' strategy has, and the optimizer's memory.
  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  Status restore(const TrainingState& state) override;
  Result<std::vector<Range>> join() override;
  std::int64_t first_step() const override { return meetings_ * options_.period + steps_alone_; }
  void begin_step(const StepContext& step) override { step_ = step; }
  void gradient_ready(std::size_t /*bucket*/) override {}
  Result<SyncStats> finish_step() override;
  Status leave() override;
  // The mean, or the center, as this worker was answered when it has met the others last: just now.
  JobWeights job_weights() const override { return {.are_there = has_just_met_, .values = link_.weights}; }
  Status save(TrainingState& state) const override;

 private:
  // Where this worker is.
  struct Place {
    std::int64_t meetings = 0;
    std::int64_t steps_alone = 0;
    bool is_meeting = false;
    std::vector<std::int64_t> answered;  // by bucket
  };

  Place place_now() const;
  // Whether the servers are where the worker was, but for the meeting that was broken off.
  bool is_current(const Place& carried) const;
  // Takes what the servers have told in their welcome.
  void take_up();
  std::string name_of(std::string_view part) const;
  // Pushes what this worker has come to, and goes on from what the servers answer.
  Result<SyncStats> meet();
  // The update of this step. `keeps`: what is pushed is the weights from before it.
  void update(bool keeps);
  void prepare(Range range);
  // Steps since a meeting that has just been.
  std::int64_t steps_behind_meeting(std::int64_t steps_alone) const;
  void take(Range range);

  LocalStepsOptions options_;
  Optimizer optimizer_;
  std::unique_ptr<PsStrategy> servers_;
  const Clock& clock_;
  int worker_;
  ParamArenas link_;       // the weights that were answered last, and what is pushed
  AlignedBuffer weights_;  // of this worker
  OptimizerState state_;
  std::vector<Range> buckets_;
  StepContext step_;
  std::int64_t meetings_ = 0;
  std::int64_t steps_alone_ = 0;  // since the last of them
  bool is_meeting_ = false;       // or was, when it failed
  bool has_just_met_ = false;     // in the last step
  bool has_joined_ = false;
  std::optional<Place> carried_;  // from an earlier generation
  bool leaving_ = false;
};

}  // namespace syncopate::ps
