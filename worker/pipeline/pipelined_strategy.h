// PipelinedStrategy: how the workers of pipelines stay in agreement. The weights of a stage are synchronised, among the
// replicas of that stage, by another strategy, which sees the tensors of the stage alone, at their places in the whole
// model's arena. This one adds what goes between the stages of one pipeline:
//
//   gradient_ready   a borrower's part of a shared tensor's gradient goes to its owner (SharedTensor), which adds it to
//                    its own before its strategy gets it
//   after the update the owner's new weights of it go to the borrower, which waits for them when it reads them
//   gather_weights   each stage's weights go to the first stage
//
// If the schedule stashes weights, the stage's strategy does not see the first steps, in which no gradient is made.
//
// Arenas are of the whole model. Pages of other stages' parts are never there, but on the first stage from
// gather_weights to the next step.
#pragma once

#include <memory>

#include "common/sync_strategy.h"
#include "worker/pipeline/pipeline_schedule.h"
#include "worker/pipeline/stage_cut.h"
#include "worker/pipeline/stage_links.h"

namespace syncopate::worker {

struct PipelinedOptions {
  PipelinePlace place;
  StageCut cut;
  bool gathers = true;  // this pipeline is the one that gathers the weights: its first stage has them where they are
                        // wanted
  // The weights become the job's only when all have left, as at servers: they are gathered once more then.
  bool gathers_behind_leaving = false;
  std::int64_t steps = 0;  // as PipelinedModel::end_after()
};

// `of_stage` is of any kind that has no tables and computes on the host; if it is resumable, so is this, with the state
// of the stage. The links must outlive the strategy.
std::unique_ptr<SyncStrategy> make_pipelined_strategy(std::unique_ptr<SyncStrategy> of_stage, PipelinedOptions options,
                                                      StageLinks& links);

}  // namespace syncopate::worker
