#include "experiments/cluster/simulated/simulated_host.h"

#include <utility>

#include "experiments/cluster/process/part_of.h"

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

// Returns the times of tensors [first, end) alone, for a batch that is so much of what the times are of.
ComputeTimes times_of(const ComputeTimes& compute, std::size_t first, std::size_t end, double part) {
  ComputeTimes some{.forward = std::vector<Duration>(compute.forward.size()),
                    .backward = std::vector<Duration>(compute.backward.size())};
  for (std::size_t tensor = first; tensor < end; ++tensor) {
    some.forward[tensor] = times(compute.forward[tensor], part);
    some.backward[tensor] = times(compute.backward[tensor], part);
  }
  return some;
}

// Returns the times of a worker's shares of the tensors.
ComputeTimes share_times(ComputeTimes compute, const worker::SplitLayout& layout) {
  for (std::size_t tensor = 0; tensor < layout.own().tensors().size(); ++tensor) {
    const auto own = static_cast<double>(layout.own().tensors()[tensor].range.size());
    const double share = own / static_cast<double>(layout.whole().tensors()[tensor].range.size());
    compute.forward[tensor] = times(compute.forward[tensor], share);
    compute.backward[tensor] = times(compute.backward[tensor], share);
  }
  return compute;
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

Result<OwnedPart> SimulatedHost::make_part(const ResolvedRun& config, int rank, const worker::SampleForm& form,
                                           worker::ComputeBackend& backend) {
  worker::ChainFacts facts;
  if (compute_.phantom) {
    facts.layout = compute_.phantom->layout;
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(facts, facts_of_part(config, rank, form));
  }
  const ComputeTimes of_worker = share_times(compute_.times, facts.split);
  const auto timed_by = [this](std::vector<ComputeTimes> times) {
    return [this, times = std::move(times)](std::unique_ptr<worker::Model> pass, int chunk) {
      return timed_model(std::move(pass), times[static_cast<std::size_t>(chunk)],
                         [this](Duration duration) { sleep(duration); });
    };
  };
  const auto part_of_batch = [&](int samples) { return static_cast<double>(samples) / config.batch_size; };
  if (!is_pipelined(config)) {
    const std::size_t tensors = facts.layout.tensors().size();
    return make_layer_part(config, rank, form, backend,
                           timed_by({times_of(of_worker, 0, tensors, part_of_batch(replica_batch(config)))}));
  }
  // A phantom has a layer for each tensor.
  const std::vector<worker::LayerFacts> layers =
      worker::layers_by_tensors(facts.layers, facts.layout, costs_of(of_worker));
  SYNCOPATE_ASSIGN_OR_RETURN(worker::StageCut cut, cut_of(config, layers, facts.layout));
  const worker::PipelinePlace place = pipeline_place(config, rank);
  const int microbatch = microbatch_samples(config);
  auto sums = std::make_unique<worker::TensorSums>();
  worker::StagePasses passes(static_cast<std::size_t>(place.chunks));
  std::vector<ComputeTimes> times;
  for (int chunk = 0; chunk < place.chunks; ++chunk) {
    const auto number = static_cast<std::size_t>(place.number_of(chunk));
    times.push_back(times_of(of_worker, cut.tensors[number], cut.tensors[number + 1], part_of_batch(microbatch)));
    for (int i = 0; compute_.phantom && i < most_in_flight(place, chunk); ++i) {
      passes[static_cast<std::size_t>(chunk)].push_back(
          make_phantom_stage(*compute_.phantom, cut.chunk(place.number_of(chunk), facts.layout), microbatch));
    }
  }
  if (!compute_.phantom) {
    SYNCOPATE_ASSIGN_OR_RETURN(passes, worker::make_stage(model_spec(config), form, cut, place, microbatch, backend,
                                                          layer_part(config, rank), sums.get()));
  }
  return assemble_stage(config, rank, std::move(cut), std::move(passes), std::move(facts.split), std::move(sums),
                        backend, timed_by(std::move(times)));
}

}  // namespace syncopate::experiments
