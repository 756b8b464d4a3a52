#include "experiments/cluster/process/stage_of.h"

#include <fmt/format.h>

#include <utility>

#include "experiments/cluster/process/data_of.h"

namespace syncopate::experiments {

worker::PipelinePlace pipeline_place(const ResolvedRun& config, int rank) {
  return {.schedule = config.pipeline_schedule,
          .stages = config.pipeline,
          .stage = pipeline_rank(config, rank).stage,
          .microbatches = microbatches_of(config)};
}

Result<CutModel> cut_model_of(const ResolvedRun& config, const worker::SampleForm& form) {
  CutModel model;
  SYNCOPATE_ASSIGN_OR_RETURN(model.facts, worker::chain_facts(model_spec(config), form));
  SYNCOPATE_ASSIGN_OR_RETURN(model.cut, cut_of(config, model.facts.layers, model.facts.layout));
  return model;
}

Status check_stages(const ResolvedRun& config) {
  if (!is_pipelined(config) || is_profile(config)) return {};
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::SampleForm form, form_of_data(config));
  return cut_model_of(config, form).status();
}

Result<worker::StageCut> cut_of(const ResolvedRun& config, std::span<const worker::LayerFacts> layers,
                                const ParamLayout& layout) {
  Result<worker::StageCut> cut = worker::cut_into_stages(layers, layout, config.pipeline);
  if (cut.ok()) return cut;
  return cut.status().in(fmt::format("--pipeline={}: --model={}", config.pipeline, config.model));
}

Result<std::unique_ptr<worker::PipelinedModel>> stage_of(const ResolvedRun& config, int rank,
                                                         const worker::SampleForm& form,
                                                         worker::ComputeBackend& backend) {
  SYNCOPATE_ASSIGN_OR_RETURN(CutModel model, cut_model_of(config, form));
  const worker::PipelinePlace place = pipeline_place(config, rank);
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<worker::StageModel>> passes,
                             worker::make_stage(model_spec(config), form, model.cut, place.stage,
                                                microbatch_samples(config), most_in_flight(place), backend));
  return assemble_stage(config, rank, std::move(model.cut), std::move(passes), backend,
                        [](std::unique_ptr<worker::Model> pass) { return pass; });
}

std::unique_ptr<worker::PipelinedModel> assemble_stage(
    const ResolvedRun& config, int rank, worker::StageCut cut, std::vector<std::unique_ptr<worker::StageModel>> passes,
    worker::ComputeBackend& backend,
    const std::function<std::unique_ptr<worker::Model>(std::unique_ptr<worker::Model>)>& timed) {
  std::vector<worker::StageSlot> slots;
  for (std::unique_ptr<worker::StageModel>& pass : passes) {
    worker::StageModel* const stage = pass.get();
    slots.push_back({.stage = stage, .model = timed(std::move(pass))});
  }
  return std::make_unique<worker::PipelinedModel>(pipeline_place(config, rank), std::move(cut), pipeline_batch(config),
                                                  std::move(slots), backend);
}

}  // namespace syncopate::experiments
