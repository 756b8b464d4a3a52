#include "experiments/cluster/process/part_of.h"

#include <fmt/format.h>

#include <utility>

#include "experiments/cluster/process/data_of.h"

namespace syncopate::experiments {
namespace {

// Names the option by which layers cannot be divided; cut_of() does so for stages.
Status in_option(const ResolvedRun& config, const Status& status) {
  return splits_layers(config) ? status.in(fmt::format("--tensor={}", config.tensor)) : status;
}

OwnedPart as_layer_part(const ResolvedRun& config, int rank, worker::SplitModel split) {
  auto model = std::make_unique<worker::TensorModel>(std::move(split), layer_part(config, rank).part);
  worker::TensorModel* const layers = model.get();
  return {.model = std::move(model), .part = {.layers = layers}};
}

}  // namespace

worker::PipelinePlace pipeline_place(const ResolvedRun& config, int rank) {
  return {.schedule = config.pipeline_schedule,
          .stages = config.pipeline,
          .stage = model_place(config, rank).stage,
          .microbatches = microbatches_of(config),
          .chunks = chunks_of_stage(config)};
}

worker::LayerPart layer_part(const ResolvedRun& config, int rank) {
  return {.part = model_place(config, rank).part, .parts = splits_layers(config) ? config.tensor : 1};
}

Result<worker::ChainFacts> facts_of_part(const ResolvedRun& config, int rank, const worker::SampleForm& form) {
  Result<worker::ChainFacts> facts = worker::chain_facts(model_spec(config), form, layer_part(config, rank));
  if (facts.ok()) return facts;
  return in_option(config, facts.status());
}

Status check_division(const ResolvedRun& config) {
  if (!divides_model(config) || is_profile(config)) return {};
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::SampleForm form, form_of_data(config));
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::ChainFacts facts, facts_of_part(config, 0, form));
  return is_pipelined(config) ? cut_of(config, facts.layers, facts.layout).status() : Status();
}

Result<ParamLayout> layout_of_stage(const ResolvedRun& config, int stage, const ParamLayout& layout) {
  if (!is_pipelined(config)) return layout;
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::SampleForm form, form_of_data(config));
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::ChainFacts facts, facts_of_part(config, 0, form));
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::StageCut cut, cut_of(config, facts.layers, layout));
  return layout.part(cut.own(stage, layout));
}

Result<worker::StageCut> cut_of(const ResolvedRun& config, std::span<const worker::LayerFacts> layers,
                                const ParamLayout& layout) {
  Result<worker::StageCut> cut = worker::cut_into_stages(layers, layout, config.pipeline, chunks_of_stage(config));
  if (cut.ok() && stashes_weights(config) && !cut->shared.empty()) {
    return Status::invalid_argument(fmt::format(
        "--pipeline-schedule=pipedream: the first and the last stage of --model={} share a tensor, and have "
        "gradients of different batches for it; use another schedule, or another model",
        config.model));
  }
  if (cut.ok()) return cut;
  const std::string chunks =
      interleaves_stages(config) ? fmt::format(" --pipeline-chunks={}", config.pipeline_chunks) : "";
  return cut.status().in(fmt::format("--pipeline={}{}: --model={}", config.pipeline, chunks, config.model));
}

Result<OwnedPart> part_of(const ResolvedRun& config, int rank, const worker::SampleForm& form,
                          worker::ComputeBackend& backend) {
  const TimedPass as_it_is = [](std::unique_ptr<worker::Model> pass, int /*chunk*/) { return pass; };
  if (!is_pipelined(config)) return make_layer_part(config, rank, form, backend, as_it_is);
  SYNCOPATE_ASSIGN_OR_RETURN(worker::ChainFacts facts, facts_of_part(config, rank, form));
  SYNCOPATE_ASSIGN_OR_RETURN(worker::StageCut cut, cut_of(config, facts.layers, facts.layout));
  auto sums = std::make_unique<worker::TensorSums>();
  SYNCOPATE_ASSIGN_OR_RETURN(
      worker::StagePasses passes,
      worker::make_stage(model_spec(config), form, cut, pipeline_place(config, rank), microbatch_samples(config),
                         backend, layer_part(config, rank), sums.get()));
  return assemble_stage(config, rank, std::move(cut), std::move(passes), std::move(facts.split), std::move(sums),
                        backend, as_it_is);
}

Result<OwnedPart> make_layer_part(const ResolvedRun& config, int rank, const worker::SampleForm& form,
                                  worker::ComputeBackend& backend, const TimedPass& timed) {
  Result<worker::SplitModel> split =
      worker::make_split_model(model_spec(config), form, layer_part(config, rank), replica_batch(config), backend);
  if (!split.ok()) return in_option(config, split.status());
  split->model = timed(std::move(split->model), 0);
  return as_layer_part(config, rank, std::move(*split));
}

OwnedPart assemble_stage(const ResolvedRun& config, int rank, worker::StageCut cut, worker::StagePasses passes,
                         worker::SplitLayout layout, std::unique_ptr<worker::TensorSums> sums,
                         worker::ComputeBackend& backend, const TimedPass& timed) {
  std::vector<std::vector<worker::StageSlot>> slots(passes.size());
  for (std::size_t chunk = 0; chunk < passes.size(); ++chunk) {
    for (std::unique_ptr<worker::StageModel>& pass : passes[chunk]) {
      worker::StageModel* const stage = pass.get();
      slots[chunk].push_back({.stage = stage, .model = timed(std::move(pass), static_cast<int>(chunk))});
    }
  }
  auto model = std::make_unique<worker::PipelinedModel>(pipeline_place(config, rank), std::move(cut),
                                                        replica_batch(config), std::move(slots), backend);
  worker::PipelinedModel* const stage = model.get();
  OwnedPart part;
  if (splits_layers(config)) {
    part =
        as_layer_part(config, rank, {.layout = std::move(layout), .sums = std::move(sums), .model = std::move(model)});
  } else {
    part.model = std::move(model);
  }
  part.part.stage = stage;
  return part;
}

}  // namespace syncopate::experiments
