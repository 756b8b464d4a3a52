// The part of a run's model that a worker trains who is a stage of a pipeline, from the run's configuration.
#pragma once

#include <functional>
#include <memory>

#include "common/status.h"
#include "experiments/config/resolved_run.h"
#include "worker/data/dataset.h"
#include "worker/pipeline/pipelined_model.h"

namespace syncopate::experiments {

worker::PipelinePlace pipeline_place(const ResolvedRun& config, int rank);

// Returns how the layers of the run's model are cut into its stages, by their FLOPs, and its layouts. Fails as
// worker::make_model() does, and with invalid argument, naming the option, if it has too few layers.
struct CutModel {
  worker::ChainFacts facts;
  worker::StageCut cut;
};
Result<CutModel> cut_model_of(const ResolvedRun& config, const worker::SampleForm& form);

// Fails as that does for a run whose model is not cut, before anything is started; a run without pipelines is well.
Status check_stages(const ResolvedRun& config);

// Returns the part of worker `rank`. The backend outlives it. Fails as the cut does.
Result<std::unique_ptr<worker::PipelinedModel>> stage_of(const ResolvedRun& config, int rank,
                                                         const worker::SampleForm& form,
                                                         worker::ComputeBackend& backend);

// Cuts such layers into the run's stages. Fails with invalid argument, naming the option, if they are too few.
Result<worker::StageCut> cut_of(const ResolvedRun& config, std::span<const worker::LayerFacts> layers,
                                const ParamLayout& layout);
// Makes a stage of what its microbatches pass through, one for each that is in flight; `timed` may make a pass take its
// time.
std::unique_ptr<worker::PipelinedModel> assemble_stage(
    const ResolvedRun& config, int rank, worker::StageCut cut, std::vector<std::unique_ptr<worker::StageModel>> passes,
    worker::ComputeBackend& backend,
    const std::function<std::unique_ptr<worker::Model>(std::unique_ptr<worker::Model>)>& timed);

}  // namespace syncopate::experiments
