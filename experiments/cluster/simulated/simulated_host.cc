#include "experiments/cluster/simulated/simulated_host.h"

#include <utility>

#include "experiments/cluster/process/stage_of.h"

namespace syncopate::experiments {
namespace {

Duration times(Duration duration, double factor) { return from_seconds(seconds(duration) * factor); }

// Returns the layers' costs by the times of their tensors. A phantom has a layer for each tensor.
std::vector<worker::LayerFacts> timed_layers(const std::vector<worker::LayerFacts>& layers, const ParamLayout& layout,
                                             const ComputeTimes& compute) {
  std::vector<worker::LayerFacts> timed = layers;
  for (std::size_t tensor = 0; layers.empty() && tensor < layout.tensors().size(); ++tensor) {
    timed.push_back({.tensors_end = tensor + 1, .reads = layout.tensors()[tensor].range});
  }
  std::size_t tensor = 0;
  for (worker::LayerFacts& layer : timed) {
    layer.cost = 0;
    for (; tensor < layer.tensors_end; ++tensor)
      layer.cost += seconds(compute.forward[tensor] + compute.backward[tensor]);
  }
  return timed;
}

// Returns the times of a stage's own tensors for a microbatch, which is so much of what the times are of.
ComputeTimes stage_times(const ComputeTimes& compute, const worker::StageCut& cut, int stage, double part) {
  ComputeTimes of_stage{.forward = std::vector<Duration>(compute.forward.size()),
                        .backward = std::vector<Duration>(compute.backward.size())};
  const auto at = static_cast<std::size_t>(stage);
  for (std::size_t tensor = cut.tensors[at]; tensor < cut.tensors[at + 1]; ++tensor) {
    of_stage.forward[tensor] = times(compute.forward[tensor], part);
    of_stage.backward[tensor] = times(compute.backward[tensor], part);
  }
  return of_stage;
}

}  // namespace

Result<std::unique_ptr<worker::Model>> SimulatedHost::make_model(const ResolvedRun& config,
                                                                 const worker::SampleForm& form,
                                                                 worker::ComputeBackend& backend) {
  const auto sleep = [this](Duration duration) { this->sleep(duration); };
  if (compute_.own) {
    std::unique_ptr<OwnTraining> own = compute_.own(rank_, threads_.clock(), sleep);
    own_ = own.get();
    return std::unique_ptr<worker::Model>(std::move(own));
  }
  std::unique_ptr<worker::Model> model;
  if (compute_.phantom) {
    model = make_phantom_model(*compute_.phantom, microbatch_samples(config));
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(model,
                               worker::make_model(model_spec(config), form, microbatch_samples(config), backend));
  }
  ComputeTimes of_pass = compute_.times;
  for (std::vector<Duration>* const pass : {&of_pass.forward, &of_pass.backward}) {
    for (Duration& time : *pass) time /= microbatches_of(config);
  }
  return timed_model(std::move(model), std::move(of_pass), sleep);
}

Result<std::unique_ptr<worker::PipelinedModel>> SimulatedHost::make_stage(const ResolvedRun& config, int rank,
                                                                          const worker::SampleForm& form,
                                                                          worker::ComputeBackend& backend) {
  worker::ChainFacts facts;
  if (compute_.phantom) {
    facts.layout = compute_.phantom->layout;
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(facts, worker::chain_facts(model_spec(config), form));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(worker::StageCut cut,
                             cut_of(config, timed_layers(facts.layers, facts.layout, compute_.times), facts.layout));
  const worker::PipelinePlace place = pipeline_place(config, rank);
  const int microbatch = microbatch_samples(config), count = most_in_flight(place);
  std::vector<std::unique_ptr<worker::StageModel>> passes;
  if (compute_.phantom) {
    for (int i = 0; i < count; ++i) {
      passes.push_back(make_phantom_stage(*compute_.phantom, cut.own(place.stage, facts.layout), microbatch));
    }
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(
        passes, worker::make_stage(model_spec(config), form, cut, place.stage, microbatch, count, backend));
  }
  const double part = static_cast<double>(microbatch) / config.batch_size;
  const ComputeTimes of_stage = stage_times(compute_.times, cut, place.stage, part);
  return assemble_stage(config, rank, std::move(cut), std::move(passes), backend,
                        [&](std::unique_ptr<worker::Model> pass) {
                          return timed_model(std::move(pass), of_stage, [this](Duration duration) { sleep(duration); });
                        });
}

}  // namespace syncopate::experiments
