#include "experiments/lab/run/pipeline_prediction.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/text/format.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/cluster/process/part_of.h"
#include "experiments/lab/report/text_table.h"
#include "prediction/timed_model.h"
#include "worker/pipeline/pipeline_time.h"

namespace syncopate::experiments {
namespace {

// The stages that a run's model is cut into, as the forms see them; `times` are shares of the whole model's step. None
// if the model cannot be cut.
struct FormOfStages {
  worker::StageCut cut;
  std::vector<worker::StageTimes> times;           // by chunk of the chain
  std::vector<prediction::ModelProfile> profiles;  // by stage
};

std::optional<FormOfStages> form_of_stages(const ResolvedRun& config, const prediction::ModelProfile& profile,
                                           const prediction::Network& network) {
  const prediction::TimedModel shares = prediction::timed_model(profile, 1);
  std::vector<double> costs;
  for (std::size_t i = 0; i < shares.forward.size(); ++i) costs.push_back(shares.forward[i] + shares.backward[i]);
  const Result<ParamLayout> layout = layout_of(config);
  if (!layout.ok() || layout->tensors().size() != costs.size()) return std::nullopt;
  worker::ChainFacts facts;
  if (!is_profile(config)) {
    const Result<worker::SampleForm> form = form_of_data(config);
    if (!form.ok()) return std::nullopt;
    Result<worker::ChainFacts> known = worker::chain_facts(model_spec(config), *form);
    if (!known.ok()) return std::nullopt;
    facts = std::move(*known);
  }
  // Real workers cut by FLOPs, simulated ones by the time that tensors take there.
  const bool by_tensors = is_profile(config) || config.cluster == ClusterKind::kSimulated;
  const std::vector<worker::LayerFacts> layers =
      by_tensors ? worker::layers_by_tensors(facts.layers, *layout, costs) : facts.layers;
  Result<worker::StageCut> cut = cut_of(config, layers, *layout);
  double whole = 0;
  for (const worker::LayerFacts& layer : layers) whole += layer.cost;
  if (!cut.ok() || !(whole > 0)) return std::nullopt;

  FormOfStages stages{.cut = std::move(*cut)};
  stages.profiles.assign(static_cast<std::size_t>(config.pipeline), {.model = profile.model});
  const double samples = static_cast<double>(microbatch_samples(config));
  for (std::size_t chunk = 0; chunk + 1 < stages.cut.tensors.size(); ++chunk) {
    prediction::ModelProfile& of_stage = stages.profiles[chunk % stages.profiles.size()];
    double forward = 0, passes = 0, cost = 0, late = 0;
    for (std::size_t i = stages.cut.tensors[chunk]; i < stages.cut.tensors[chunk + 1]; ++i) {
      of_stage.tensors.push_back(profile.tensors[i]);
      forward += shares.forward[i];
      passes += costs[i];
    }
    for (std::size_t i = stages.cut.layers[chunk]; i < stages.cut.layers[chunk + 1]; ++i) {
      cost += layers[i].cost;
      for (std::size_t tensor = stages.cut.tensors[chunk]; tensor < stages.cut.tensors[chunk + 1]; ++tensor) {
        const Range range = layout->tensors()[tensor].range;
        const auto is_its = [&](Range its) { return overlap(its, range); };
        if (std::ranges::any_of(layers[i].late_gradients, is_its)) late += shares.backward[tensor] / 2;
      }
    }
    const double share = cost / whole, in_forward = passes > 0 ? forward / passes : 0;
    const worker::LayerFacts& last = layers[stages.cut.layers[chunk + 1] - 1];
    stages.times.push_back(
        {.forward = share * in_forward,
         .backward = share * (1 - in_forward),
         .weights = passes > 0 ? share * late / passes : 0,
         .to_next = sizeof(float) * samples * static_cast<double>(last.outputs) / network.bytes_per_second});
  }
  return stages;
}

double bytes_of(const Range& range) { return sizeof(float) * static_cast<double>(range.size()); }

// Returns how long a step takes once each takes as long as the one before. `left`: by stage, of its exchange behind its
// last backward.
double steady_step(const worker::PipelinePlace& pipeline, const FormOfStages& stages,
                   const prediction::Network& network, const std::vector<double>& left) {
  if (stashes_weights(pipeline.schedule)) return worker::pipeline_period(pipeline, stages.times, network.alpha, left);
  constexpr int kSteps = 4;
  const auto seconds_of = [&](const worker::SharedTensor& shared) {
    return network.alpha + bytes_of(shared.range) / network.bytes_per_second;
  };
  double step = 0;
  std::vector<double> begins(left.size());
  for (int i = 0; i < kSteps; ++i) {
    std::vector<double> ends = worker::pipeline_ends(pipeline, stages.times, network.alpha, begins);
    const double began = begins.front();
    for (const worker::SharedTensor& shared : stages.cut.shared) {
      double& end = ends[static_cast<std::size_t>(shared.owner)];
      end = std::max(end, ends[static_cast<std::size_t>(shared.borrower)] + seconds_of(shared));
    }
    for (std::size_t s = 0; s < ends.size(); ++s) begins[s] = ends[s] + left[s];
    for (const worker::SharedTensor& shared : stages.cut.shared) {
      double& borrower = begins[static_cast<std::size_t>(shared.borrower)];
      borrower = std::max(borrower, begins[static_cast<std::size_t>(shared.owner)] + seconds_of(shared));
    }
    step = begins.front() - began;
  }
  return step;
}

// Returns what no step can be below: the schedule where no message takes time, and the bytes of the busiest ring.
double least_of(const worker::PipelinePlace& pipeline, FormOfStages stages, const prediction::Network& network) {
  for (worker::StageTimes& times : stages.times) times.to_next = 0;
  stages.cut.shared.clear();
  // From step to step as in steady_step(): a stage that has less to do begins earlier, and waits for its neighbours.
  double least = steady_step(pipeline, stages, {.bytes_per_second = network.bytes_per_second},
                             std::vector<double>(stages.profiles.size()));
  const double replicas = network.workers;
  for (const prediction::ModelProfile& stage : stages.profiles) {
    least = std::max(least, 2 * (replicas - 1) / replicas * stage.bytes() / network.bytes_per_second);
  }
  return least;
}

}  // namespace

std::optional<PipelinePrediction> predict_pipeline(const ResolvedRun& config, const prediction::ModelProfile& profile,
                                                   double compute, const prediction::Network& network,
                                                   const prediction::ExchangePlan& plan) {
  std::optional<FormOfStages> stages = form_of_stages(config, profile, network);
  if (!stages || network.workers_per_host > 1) return std::nullopt;
  const double microbatch = compute * config.pipeline / microbatches_of(config);
  std::vector<double> passes(stages->profiles.size());  // of a microbatch, through all of a stage
  for (std::size_t chunk = 0; chunk < stages->times.size(); ++chunk) {
    worker::StageTimes& times = stages->times[chunk];
    for (double* const part : {&times.forward, &times.backward, &times.weights}) *part *= microbatch;
    passes[chunk % passes.size()] += times.forward + times.backward;
  }
  std::vector<double> left;
  PipelinePrediction found;
  for (std::size_t s = 0; s < passes.size(); ++s) {
    const Result<prediction::StepPrediction> last =
        prediction::predict_step(stages->profiles[s], passes[s], network, plan);
    if (!last.ok()) return std::nullopt;
    left.push_back(last->exposed);
    found.own_bytes.push_back(stages->profiles[s].bytes());
  }
  found.borrowed_bytes.assign(passes.size(), 0);
  for (const worker::SharedTensor& shared : stages->cut.shared) {
    found.borrowed_bytes[static_cast<std::size_t>(shared.borrower)] += bytes_of(shared.range);
  }
  const worker::PipelinePlace pipeline = pipeline_place(config, 0);
  found.step = steady_step(pipeline, *stages, network, left);
  found.least = least_of(pipeline, std::move(*stages), network);
  return found;
}

std::vector<double> seconds_to_next(const ResolvedRun& config, const prediction::ModelProfile& profile,
                                    double bytes_per_second) {
  const std::optional<FormOfStages> stages = form_of_stages(config, profile, {.bytes_per_second = bytes_per_second});
  std::vector<double> seconds;
  for (std::size_t chunk = 0; stages && chunk < stages->times.size(); ++chunk) {
    seconds.push_back(chunk + 1 < stages->times.size() ? stages->times[chunk].to_next : 0);
  }
  return seconds;
}

std::string stages_text(const ResolvedRun& config, const prediction::ModelProfile& profile) {
  const std::optional<FormOfStages> stages = form_of_stages(config, profile, {.bytes_per_second = 1});
  if (!stages) return {};
  // "dense1.weight" is of the layer dense1.
  const auto layer_of = [](const std::string& tensor) { return tensor.substr(0, tensor.rfind('.')); };
  std::vector<std::string> layers(stages->profiles.size());
  std::vector<double> shares(layers.size());
  for (std::size_t chunk = 0; chunk < stages->times.size(); ++chunk) {
    const std::size_t stage = chunk % layers.size();
    const std::string first = layer_of(profile.tensors[stages->cut.tensors[chunk]].name),
                      last = layer_of(profile.tensors[stages->cut.tensors[chunk + 1] - 1].name);
    layers[stage] +=
        fmt::format("{}{}{}", layers[stage].empty() ? "" : ", ", first, first == last ? "" : " to " + last);
    shares[stage] += stages->times[chunk].forward + stages->times[chunk].backward;
  }
  std::vector<std::vector<std::string>> rows;
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    rows.push_back({fmt::format("  stage {}", stage), layers[stage], format_bytes(stages->profiles[stage].bytes()),
                    fmt::format("{:.1f} % of the computing", 100 * shares[stage])});
  }
  return fmt::format("pipeline of {} stages, cut by {}\n", layers.size(),
                     config.cluster == ClusterKind::kSimulated ? "their time" : "FLOPs") +
         text_table(rows);
}

}  // namespace syncopate::experiments
