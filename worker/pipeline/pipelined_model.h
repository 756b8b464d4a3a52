// PipelinedModel: the part of a model that one worker of a pipeline trains, as the trainer's Model. A batch is the
// pipeline's: forward cuts it into microbatches and works through the actions of the schedule up to the first backward,
// backward through the rest, so that the trainer knows of no microbatch. Waits for other stages are inside both passes;
// the links count them.
//
//   forward of a microbatch    activations from the stage before -> the layers -> activations to the stage behind
//   backward of a microbatch   their gradient from the stage behind -> the layers -> a gradient to the stage before
//   its pass for weights       if the schedule has one, the gradients that backward has left out; no messages
//
// If the stage has several chunks, the last stage sends activations to the first, and gets their gradient from it, but
// for those of the model's end.
//
// If the schedule stashes weights, backward is of an earlier batch, with the weights of its forward pass, and of none,
// without a message or a tensor reported, in the first steps, which make no update (PipelinedStrategy). The last step
// has that of all batches in flight, whose gradients it adds up.
//
// The gradients of microbatches are added up, in the order of the schedule: the first is written where the sum is to
// be, each later one beside it. A tensor is reported in the last pass that adds to it, or a later one of the chunk. The
// loss, known on the last stage alone, is the mean over the batch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/os/aligned_buffer.h"
#include "worker/model.h"
#include "worker/pipeline/pipeline_schedule.h"
#include "worker/pipeline/stage_cut.h"
#include "worker/pipeline/stage_links.h"
#include "worker/pipeline/stage_model.h"

namespace syncopate::worker {

// One for each microbatch that is in flight in a chunk. `model` passes through `stage`, and may take its time for it.
struct StageSlot {
  StageModel* stage = nullptr;
  std::unique_ptr<Model> model;
  std::vector<float> input = {};  // the activations of the stage before; samples, where it must keep them
  AlignedBuffer stash = {};       // if weights are: those of its forward pass; of the whole layout, as `beside_`
  std::int64_t version = 0;       // how many updates they had had
};

class PipelinedModel final : public Model {
 public:
  // By chunk there are most_in_flight(place, chunk) slots, each for microbatches of `samples` / place.microbatches
  // samples.
  PipelinedModel(const PipelinePlace& place, StageCut cut, int samples, std::vector<std::vector<StageSlot>> slots,
                 ComputeBackend& backend);

  // So many steps are made. Without a call batches that are in flight behind the last one have no backward pass.
  void end_after(std::int64_t steps) { steps_ = steps; }
  std::int64_t ends_after() const { return steps_; }

  const PipelinePlace& place() const { return place_; }
  const StageCut& cut() const { return cut_; }
  // Where messages go, until it is null again: before the first step, and until the endpoint of the links ends.
  void connect(StageLinks* links) { links_ = links; }

  const std::string& name() const override { return first().name(); }
  const ParamLayout& layout() const override { return first().layout(); }
  const ParamLayout& local_layout() const override { return first().local_layout(); }
  std::span<float> local_state() override { return chunks_.front().slots.front().stage->local_state(); }
  int batch_size() const override { return samples_; }
  double flops_per_sample() const override;
  std::vector<Range> params() const override { return cut_.own(place_.stage, layout()); }
  bool has_loss() const override { return place_.is_last(); }
  void initialize(std::uint64_t seed, std::span<float> weights) const override;

  void forward(In weights, const BatchView& batch) override;
  void before_reading(std::function<void(Range)> before) override;
  void backward(In weights, Out gradients, const std::function<void(std::size_t)>& tensor_ready) override;
  LossAndCorrect loss(std::size_t /*turn*/) override { return loss_; }

 private:
  struct Chunk {
    std::vector<StageSlot> slots;
    // In this step: microbatches whose backward, and whose pass for weights, is in the sum; and the tensors from which
    // on all are reported.
    int added = 0, late_added = 0;
    std::size_t reported = 0;
  };

  const StageModel& first() const { return *chunks_.front().slots.front().stage; }
  Chunk& chunk_of(const PipelineAction& action) { return chunks_[static_cast<std::size_t>(action.chunk)]; }
  StageSlot& slot_of(const PipelineAction& action) {
    std::vector<StageSlot>& slots = chunk_of(action).slots;
    return slots[static_cast<std::size_t>(action.microbatch) % slots.size()];
  }
  // Keeps the weights of a forward pass, for the same batch's backward pass.
  void stash(In weights, StageSlot& slot);
  void act(const PipelineAction& action, In weights, Out gradients, const TensorReady& tensor_ready);
  void pass_forward(const PipelineAction& action, In weights);
  void pass_backward(const PipelineAction& action, In weights, Out gradients, const TensorReady& tensor_ready);
  void pass_weights(const PipelineAction& action, Out gradients, const TensorReady& tensor_ready);
  // Reports the chunk's tensors from the last one that is not reported to this one.
  static void report_down_to(std::size_t tensor, Chunk& chunk, const TensorReady& tensor_ready);
  // The gradients of this range are those of the microbatch alone, in `from`, and are to be in the sum.
  void add(Range range, Out from, Out gradients);

  const PipelinePlace place_;
  const StageCut cut_;
  const int samples_;
  std::vector<Chunk> chunks_;
  ComputeBackend& backend_;
  std::vector<PipelineAction> actions_;  // of this step
  AlignedBuffer beside_;  // a microbatch's gradients; of the whole layout, of which the stage's part takes memory
  StageLinks* links_ = nullptr;
  BatchView batch_;                       // of this step
  std::int64_t steps_ = 0;                // of the job; 0: not known
  std::int64_t begun_ = 0, updates_ = 0;  // steps, and those of them that had a backward pass
  int backward_passes_ = 0;               // of each chunk, in this step
  double stale_ = 0;                      // updates since the weights of these, in the mean, and at most
  std::int64_t stalest_ = 0;
  std::size_t done_ = 0;  // actions of this step
  LossAndCorrect loss_;
};

}  // namespace syncopate::worker
