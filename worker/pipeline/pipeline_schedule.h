// PipelineSchedule: the order in which a stage of a pipeline works through the microbatches of a step. Pure.
//
// A model's chain of layers is cut into S stages, a worker each, and a step's batch into M microbatches. Activations go
// from stage to stage, gradients back; all M gradients are added up before the one update of the step, so that the
// result is that of the whole batch (but for pipedream). The formulas hold where all stages need as long (f and b for a
// microbatch's forward and backward) and messages take no time: a step takes M (f + b), and the bubble, for which a
// worker waits.
//
//   gpipe        all forward, then all backward, the last microbatch first (Huang et al. 2019, "GPipe: efficient
//                training of giant neural networks using pipeline parallelism", section 2.3 and figure 2). Bubble:
//                (S - 1)(f + b). M microbatches are in flight: a stage holds the activations of all.
//   1f1b         as many forward as there are stages behind this one, then one forward and one backward in turn
//                (Narayanan et al. 2021, "Memory-efficient pipeline-parallel DNN training", section 3.2:
//                PipeDream-Flush; "Efficient large-scale language model training on GPU clusters using Megatron-LM",
//                section 2.2). The same bubble. At most S - s are in flight at stage s.
//   interleaved  a stage has V chunks of the chain, which is cut into V S: chunk c of stage s is number c S + s (the
//                Megatron-LM paper, section 2.2 and figure 4). A group of S microbatches passes through one chunk after
//                the other, so that M is a multiple of S. Before its first backward a stage makes as many passes
//                through a chunk as Megatron-LM does: 2 (S - s - 1) + (V - 1) S + 1. Bubble: (S - 1)(f + b) / V.
//   zero-bubble  backward is in two passes: the gradient of a stage's inputs, for which the stage before waits, and
//                that of its weights, for which nobody does (Qi et al. 2023, "Zero bubble pipeline parallelism",
//                section 3: ZB-H1). Stage s always has s of the second passes before it, and makes these at the end.
//                Bubble, where M is at least S and b = bi + bw: (S - 1)(f + bi - bw). At most S are in flight, at every
//                stage.
//   pipedream    nobody waits for the end of a step: in step t stage s makes the forward pass of batch t, which is one
//                microbatch, and the backward pass of batch t - (S - s - 1), with the weights that it had in its
//                forward pass, and updates with its gradient (Narayanan et al. 2019, "PipeDream: generalized pipeline
//                parallelism for DNN training", sections 3.2 and 3.3: 1F1B and weight stashing). So S - s versions of
//                the stage's weights are kept, and S - s - 1 updates were made since the one that a gradient is of. No
//                bubble once all stages have a batch. S - s are in flight.
#pragma once

#include <cstdint>
#include <vector>

namespace syncopate::worker {

enum class PipelineSchedule { kGpipe, kOneForwardOneBackward, kInterleaved, kZeroBubble, kPipedream };

// "gpipe", "1f1b", "interleaved", "zero-bubble" or "pipedream".
const char* name_of(PipelineSchedule schedule);

// Whether backward is in two passes.
constexpr bool splits_backward(PipelineSchedule schedule) { return schedule == PipelineSchedule::kZeroBubble; }
// Whether a batch's backward pass may be in a later step than its forward pass, and has the weights of that.
constexpr bool stashes_weights(PipelineSchedule schedule) { return schedule == PipelineSchedule::kPipedream; }

// A stage's place in a pipeline: stage `stage` of `stages`, both at least 1 and counted from 0, with as many
// microbatches a step; and into how many chunks its layers are cut, 1 unless the schedule is interleaved.
struct PipelinePlace {
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  int stages = 1;
  int stage = 0;
  int microbatches = 1;
  int chunks = 1;

  // The number of a chunk in the chain of all stages' chunks.
  int number_of(int chunk) const { return chunk * stages + stage; }
  // Whether the chunk, or the stage, has the chain's first layers, or its last ones.
  bool is_first(int chunk) const { return number_of(chunk) == 0; }
  bool is_last(int chunk) const { return number_of(chunk) == stages * chunks - 1; }
  bool is_first() const { return is_first(0); }
  bool is_last() const { return is_last(chunks - 1); }
  // How many steps after its forward pass a batch has its backward pass.
  int lag() const { return stashes_weights(schedule) ? stages - stage - 1 : 0; }
  // Who sends activations to this stage, and to whom it sends them; a single stage has neither.
  int before() const { return (stage + stages - 1) % stages; }
  int behind() const { return (stage + 1) % stages; }
};

enum class PipelinePass {
  kForward,
  kBackward,  // of inputs and weights, or, if there is a pass for weights, of what that leaves
  kWeights,
};

struct PipelineAction {
  PipelinePass pass = PipelinePass::kForward;
  int microbatch = 0;
  int chunk = 0;

  bool operator==(const PipelineAction&) const = default;
};

// Returns what a stage does in a step, in order: through each chunk each microbatch once forward, and later once
// backward, and then the pass for weights, if there is one. If the schedule is interleaved, M must be a multiple of S.
// Neighbouring chunks have the same order of each pass, so that messages between them need no names.
std::vector<PipelineAction> pipeline_actions(const PipelinePlace& place);
// The same where weights are stashed, of step `step`, from 0, whose batches have the numbers of their steps: forward of
// its own, then backward of the one of lag() steps before, if there is one; in the last step of all those that are in
// flight.
std::vector<PipelineAction> stashing_actions(const PipelinePlace& place, std::int64_t step, bool is_last);

// Returns the most microbatches that are in flight in a chunk at once: whose forward has begun and whose last pass has
// not ended. They follow each other.
int most_in_flight(const PipelinePlace& place, int chunk = 0);

}  // namespace syncopate::worker
