// LocalStepsStrategy: a worker makes steps of its own, with its own optimizer, and exchanges weights with the others
// through the servers every `period` steps (a meeting). A step without a meeting waits for nobody and sends nothing.
//
//   local-sgd  The worker pushes how far it has moved from the weights b that it last received, b - x. The shards
//              apply the mean of that as a gradient, with sgd and a rate of 1: all go on from b - mean(b - x) =
//              mean(x) (the "pseudo-gradient" of Reddi et al. 2021, "Adaptive federated optimization", section 2).
//              With a quorum a push says how many steps it stands for, and others may have met since this worker did.
//   easgd      A meeting is part of the step that follows `period` others (Zhang, Choromanska and LeCun 2015, algorithm
//              1): with the weights x from before that step and d = alpha (x - c), the center moves to c' = c + d, and
//              the worker to x - d - rate · g(x), where the gradient is also that of x. The worker pushes x; a shard
//              responds with c', which is all that the worker needs: x - c' = (1 - alpha) (x - c), so d = alpha /
//              (1 - alpha) (x - c'). In the very first step nothing has moved, and there is no meeting.
//
// The optimizer's state stays with the worker from one meeting to the next. leave() holds a last meeting if steps have
// been made since the previous one (under easgd that is the beginning of the step that would follow). After it all
// workers hold the servers' weights: the mean, or the center.
//
// A worker that goes on in another membership epoch keeps its own weights and its optimizer's state if the servers are
// where it last met them; with a quorum, it goes as far from their newest weights as it was from those that it had.
// join() finishes a meeting that was broken off, chunk by chunk: it does not push again what a shard has applied. If
// the servers are elsewhere (because they went back to a checkpoint, say), the worker goes on from their weights.
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
  Tracer* tracer = nullptr;           // records the worker's own updates, if set; must outlive the strategy
  bool has_quorum = false;            // meetings may end without this worker (Consistency::quorum)
};

class LocalStepsStrategy final : public SyncStrategy, public Resumable {
 public:
  // `servers` pushes and pulls, and must have no step under way when its finish_step returns. `worker` is the rank
  // under which the worker's own values are saved in a state. `clock` must outlive this object.
  LocalStepsStrategy(const LocalStepsOptions& options, std::unique_ptr<PsStrategy> servers, const Clock& clock,
                     int worker = 0);

  Resumable* resumable() override { return this; }
  // The gradient arena is also what is sent. This takes one more arena than the servers' strategy, and the optimizer's
  // state.
  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  Status restore(const TrainingState& state) override;
  Result<std::vector<Range>> join() override;
  std::int64_t first_step() const override { return meetings_ * options_.period + steps_alone_; }
  void begin_step(const StepContext& step) override { step_ = step; }
  void gradient_ready(std::size_t /*bucket*/) override {}
  Result<SyncStats> finish_step() override;
  Status leave() override;
  // The mean, or the center, as this worker received it; present only if it has just met the others.
  JobWeights job_weights() const override { return {.are_there = has_just_met_, .values = link_.weights}; }
  Status save(TrainingState& state) const override;

 private:
  // How far this worker has come.
  struct Place {
    std::int64_t meetings = 0;
    std::int64_t steps_alone = 0;
    bool is_meeting = false;
    std::vector<std::int64_t> answered;  // by bucket
  };

  Place place_now() const;
  // True if the servers are where this worker was, except for the meeting that was broken off.
  bool is_current(const Place& carried) const;
  // Adopts what the servers reported in their welcome.
  void take_up();
  std::string name_of(std::string_view part) const;
  // Pushes this worker's result, and goes on from the servers' response.
  Result<SyncStats> meet();
  // Makes the update of this step. With `keeps`, the weights from before it are kept to be pushed.
  void update(bool keeps);
  void prepare(Range range);
  // The number of steps since a meeting that ended after `steps_alone` steps. Under easgd the meeting's own step
  // counts.
  std::int64_t steps_behind_meeting(std::int64_t steps_alone) const;
  void take(Range range);
  // If some chunks have had this worker's push of a meeting and others have not, it comes late to these, so that it
  // waits for nobody there: others may wait for it in the chunks that will not have another push of it before.
  void make_up_for_chunks();
  // Moves this worker's own weights as far as the servers' have gone since it received them.
  void follow(Range range);

  LocalStepsOptions options_;
  Optimizer optimizer_;
  std::unique_ptr<PsStrategy> servers_;
  const Clock& clock_;
  int worker_;
  ParamArenas link_;       // the weights that were last received, and what is pushed
  AlignedBuffer weights_;  // this worker's own
  OptimizerState state_;
  std::vector<Range> buckets_;
  StepContext step_;
  std::int64_t meetings_ = 0;
  std::int64_t steps_alone_ = 0;  // since the last meeting
  bool is_meeting_ = false;       // also set if the meeting failed
  bool has_just_met_ = false;     // in the last step
  bool has_joined_ = false;
  std::optional<Place> carried_;  // from an earlier membership epoch
  AlignedBuffer base_;            // with a quorum: the weights that were last received there
  bool leaving_ = false;
};

}  // namespace syncopate::ps
