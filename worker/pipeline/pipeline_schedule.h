// PipelineSchedule: the order in which a stage of a pipeline works through the microbatches of a step. Pure.
//
// A model's chain of layers is cut into S stages, a worker each, and a step's batch into M microbatches. Activations go
// from stage to stage, gradients back; all M gradients are added up before the one update of the step, so that the
// result is that of the whole batch. Both orders take, where all stages need as long (f and b for a microbatch's
// forward and backward) and messages take no time, (M + S - 1)(f + b) a step: (S - 1) / (M + S - 1) of a worker's time
// it waits, the bubble.
//
//   gpipe  all forward, then all backward, the last microbatch first (Huang et al. 2019, "GPipe: efficient training of
//          giant neural networks using pipeline parallelism", section 2.3 and figure 2). M microbatches are in flight:
//          a stage holds the activations of all.
//   1f1b   as many forward as there are stages behind this one, then one forward and one backward in turn (Narayanan et
//          al. 2021, "Memory-efficient pipeline-parallel DNN training", section 3.2: PipeDream-Flush; "Efficient
//          large-scale language model training on GPU clusters using Megatron-LM", section 2.2). At most S - s are in
//          flight at stage s.
#pragma once

#include <vector>

namespace syncopate::worker {

enum class PipelineSchedule { kGpipe, kOneForwardOneBackward };

// "gpipe" or "1f1b".
const char* name_of(PipelineSchedule schedule);

// A stage's place in a pipeline: stage `stage` of `stages`, both at least 1 and counted from 0, with as many
// microbatches a step.
struct PipelinePlace {
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  int stages = 1;
  int stage = 0;
  int microbatches = 1;

  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage == stages - 1; }
};

struct PipelineAction {
  bool is_forward = true;
  int microbatch = 0;

  bool operator==(const PipelineAction&) const = default;
};

// Returns what a stage does in a step, in order: each microbatch once forward, and later once backward. Neighbouring
// stages have the same order of each, so that messages between them need no names.
std::vector<PipelineAction> pipeline_actions(const PipelinePlace& place);

// Returns the most microbatches that are in flight at a stage at once: whose forward has begun and whose backward has
// not ended.
int most_in_flight(const PipelinePlace& place);

}  // namespace syncopate::worker
