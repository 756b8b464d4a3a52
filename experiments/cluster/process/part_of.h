// The part of a run's model that a worker trains, from the run's configuration: a stage of a pipeline, parts of the
// layers, or parts of a stage's layers.
#pragma once

#include <functional>
#include <memory>

#include "common/status.h"
#include "experiments/cluster/process/model_part.h"
#include "experiments/config/resolved_run.h"
#include "worker/data/dataset.h"

namespace syncopate::experiments {

worker::PipelinePlace pipeline_place(const ResolvedRun& config, int rank);
worker::LayerPart layer_part(const ResolvedRun& config, int rank);

// Fails for a run whose model cannot be divided as it is to be, before anything is started: as worker::make_model()
// does, and with invalid argument, naming the option.
Status check_division(const ResolvedRun& config);

// Returns the part of worker `rank`. The backend outlives it. Fails as that does.
Result<OwnedPart> part_of(const ResolvedRun& config, int rank, const worker::SampleForm& form,
                          worker::ComputeBackend& backend);

// Returns the part of the model's layout that a stage of real processes has; all of it where there are no stages. Fails
// as check_division() does.
Result<ParamLayout> layout_of_stage(const ResolvedRun& config, int stage, const ParamLayout& layout);

// What that is made of, for a host where a part takes another time.

// Returns what is known of the worker's layers, and cuts such layers into the run's stages.
Result<worker::ChainFacts> facts_of_part(const ResolvedRun& config, int rank, const worker::SampleForm& form);
Result<worker::StageCut> cut_of(const ResolvedRun& config, std::span<const worker::LayerFacts> layers,
                                const ParamLayout& layout);
// Makes a pass through some of the worker's layers, those of one of its chunks, take its time.
using TimedPass = std::function<std::unique_ptr<worker::Model>(std::unique_ptr<worker::Model>, int chunk)>;
// Make the part of a worker that is no stage, and of one that is: of what its microbatches pass through, which sum by
// `sums` if the layers are divided as `layout` says.
Result<OwnedPart> make_layer_part(const ResolvedRun& config, int rank, const worker::SampleForm& form,
                                  worker::ComputeBackend& backend, const TimedPass& timed);
OwnedPart assemble_stage(const ResolvedRun& config, int rank, worker::StageCut cut, worker::StagePasses passes,
                         worker::SplitLayout layout, std::unique_ptr<worker::TensorSums> sums,
                         worker::ComputeBackend& backend, const TimedPass& timed);

}  // namespace syncopate::experiments
