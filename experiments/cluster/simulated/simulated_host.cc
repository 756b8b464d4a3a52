#include "experiments/cluster/simulated/simulated_host.h"

#include <utility>

#include "experiments/cluster/process/stage_of.h"

namespace syncopate::experiments {
namespace {

Duration times(Duration duration, double factor) { return from_seconds(seconds(duration) * factor); }

std::vector<double> costs_of(const ComputeTimes& compute) {
  std::vector<double> costs;
  for (std::size_t tensor = 0; tensor < compute.forward.size(); ++tensor) {
    costs.push_back(seconds(compute.forward[tensor] + compute.backward[tensor]));
  }
  return costs;
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
    model = make_phantom_model(*compute_.phantom, config.batch_size);
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(model, worker::make_model(model_spec(config), form, config.batch_size, backend));
  }
  return timed_model(std::move(model), compute_.times, sleep);
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
  // A phantom has a layer for each tensor.
  const std::vector<worker::LayerFacts> layers =
      worker::layers_by_tensors(facts.layers, facts.layout, costs_of(compute_.times));
  SYNCOPATE_ASSIGN_OR_RETURN(worker::StageCut cut, cut_of(config, layers, facts.layout));
  const worker::PipelinePlace place = pipeline_place(config, rank);
  const int microbatch = pipeline_batch(config) / place.microbatches, count = most_in_flight(place);
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
