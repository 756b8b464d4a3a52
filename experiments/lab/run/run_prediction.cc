#include "experiments/lab/run/run_prediction.h"

#include <algorithm>

#include "allreduce/strategy/sharded_strategy.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/cluster/process/part_of.h"
#include "experiments/config/profile_choice.h"
#include "prediction/asynchronous_prediction.h"
#include "prediction/timed_model.h"
#include "worker/pipeline/pipeline_time.h"

namespace syncopate::experiments {
namespace {

using prediction::Exchange;

bool has_tables(const ParamLayout& layout) {
  return std::ranges::any_of(layout.tensors(), [](const TensorSpec& tensor) { return tensor.table.has_value(); });
}

// What happens to a run that no form knows of.
bool is_disturbed(const ResolvedRun& config) {
  return !config.stragglers.empty() || !config.sample_costs.are_equal() || !config.faults.empty() ||
         compresses(config) || config.replicas > 0 || gathers_on_demand(config) ||
         (shards_weights(config) && microbatches_of(config) > 1);
}

// How processes share the hosts' links.
struct SharedHosts {
  int workers = 1;             // of each host that has any
  bool holds_servers = false;  // one each, on the first of the workers' hosts; else servers have hosts of their own
};

// Returns none if hosts share their links otherwise, or which bytes cross a link is not known.
std::optional<SharedHosts> shared_hosts(const ResolvedRun& config) {
  if (config.cluster == ClusterKind::kReal && !config.hosts.empty()) return std::nullopt;
  if (config.cluster != ClusterKind::kReal && config.fabric.racks > 1) return std::nullopt;
  const std::vector<HostProcesses> hosts = shared_hosts_of(config);
  if (hosts.empty()) return SharedHosts();
  SharedHosts shared{.workers = 0};
  bool has_servers_apart = false;
  for (const HostProcesses& host : hosts) {
    if (host.servers > 1 || (host.workers > 0 && shared.workers > 0 && host.workers != shared.workers)) {
      return std::nullopt;
    }
    shared.workers = std::max(shared.workers, host.workers);
    (host.workers > 0 ? shared.holds_servers : has_servers_apart) |= host.servers > 0;
  }
  return shared.holds_servers && has_servers_apart ? std::nullopt : std::optional(shared);
}

std::optional<Exchange> exchange_of(allreduce::ScheduleKind kind) {
  switch (kind) {
    case allreduce::ScheduleKind::kRing:
      return Exchange::kRing;
    case allreduce::ScheduleKind::kBinomialTree:
      return Exchange::kTree;
    case allreduce::ScheduleKind::kHalvingDoubling:
      return Exchange::kHalvingDoubling;
    case allreduce::ScheduleKind::kHierarchical:
      return Exchange::kHierarchical;
    default:
      return std::nullopt;
  }
}

bool set_servers(const ResolvedRun& config, FormOfRun& form) {
  const ps::Consistency consistency = consistency_of(config);
  const bool is_plain = config.backup_workers == 0 && config.pipeline_depth == 0 && !config.overlap_forward;
  form.is_asynchronous = consistency.to_string() == "async";
  if (!is_plain || (!form.is_asynchronous && consistency.to_string() != "sync")) return false;
  form.plan.exchange = Exchange::kServers;
  form.plan.servers = config.servers;
  form.plan.aggregated = aggregates_on_hosts(config);
  form.plan.sharding =
      config.sharding == ps::ShardingPolicy::kWhole ? prediction::Sharding::kWhole : prediction::Sharding::kEven;
  return true;
}

bool set_allreduce(const ResolvedRun& config, FormOfRun& form) {
  if (averages_weights(config) || !has_own_collective(config) || !config.bucket_bytes) return false;
  form.plan.overlap = config.overlap;
  form.plan.bucket_bytes = static_cast<double>(*config.bucket_bytes);
  if (config.collective == CollectiveKind::kBySize) return true;  // the ring stands for all of them
  const std::optional<allreduce::ScheduleKind> kind = schedule_kind_of(config);
  // Where no host has several workers it is a ring or `direct`, which are asked for by their names.
  if (kind == allreduce::ScheduleKind::kHierarchical && form.network.workers_per_host < 2) return false;
  const std::optional<Exchange> exchange = kind ? exchange_of(*kind) : std::nullopt;
  if (shards_state(config)) form.plan.stage = static_cast<int>(config.stage);
  form.plan.ahead_bytes = allreduce::kBucketsAhead * form.plan.bucket_bytes;
  if (exchange) form.plan.exchange = *exchange;
  return exchange.has_value();
}

std::optional<double> step_of(const prediction::ModelProfile& profile, double compute, const FormOfRun& form) {
  const Result<prediction::StepPrediction> step =
      form.is_asynchronous ? prediction::predict_asynchronous_step(profile, compute, form.network, form.plan)
                           : prediction::predict_step(profile, compute, form.network, form.plan);
  return step.ok() ? std::optional(step->step) : std::nullopt;
}

// The links and the exchange, which is that of a stage's replicas where the model is cut into stages.
std::optional<FormOfRun> exchange_form_of(const ResolvedRun& config) {
  if (!is_distributed(config) || !config.shape || config.shape->bits_per_second <= 0 || is_disturbed(config)) {
    return std::nullopt;
  }
  // Tables have no form, nor have sums within passes, nor servers whose links several stages share.
  if (is_hybrid(config) || splits_layers(config) || runs_command(config)) return std::nullopt;
  if (is_pipelined(config) && has_servers(config)) return std::nullopt;
  const std::optional<SharedHosts> hosts = shared_hosts(config);
  if (!hosts) return std::nullopt;
  FormOfRun form{.network = {.alpha = seconds(config.shape->delay),
                             .bytes_per_second = config.shape->payload_bytes_per_second(),
                             .workers = config.workers,
                             .workers_per_host = hosts->workers}};
  form.plan.colocated = hosts->holds_servers;
  if (is_pipelined(config)) form.network.workers = model_replicas(config);
  const bool has_form = has_servers(config) ? set_servers(config, form) : set_allreduce(config, form);
  return has_form ? std::optional(form) : std::nullopt;
}

// The stages that a run's model is cut into, as the forms see them; `times` are shares of the whole model's step. None
// if the model cannot be cut.
struct FormOfStages {
  worker::StageCut cut;
  std::vector<worker::StageTimes> times;           // by chunk of the chain
  std::vector<prediction::ModelProfile> profiles;  // by stage
};

std::optional<FormOfStages> form_of_stages(const ResolvedRun& config, const prediction::ModelProfile& profile) {
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
    stages.times.push_back({.forward = share * in_forward,
                            .backward = share * (1 - in_forward),
                            .weights = passes > 0 ? share * late / passes : 0,
                            .to_next = sizeof(float) * samples * static_cast<double>(last.outputs) /
                                       config.shape->payload_bytes_per_second()});
  }
  return stages;
}

std::optional<double> pipelined_step(const ResolvedRun& config, const prediction::ModelProfile& profile, double compute,
                                     const FormOfRun& form) {
  constexpr int kSteps = 4;  // until each takes as long as the one before
  std::optional<FormOfStages> stages = form_of_stages(config, profile);
  if (!stages || form.network.workers_per_host > 1) return std::nullopt;
  const double microbatch = compute * config.pipeline / microbatches_of(config);
  std::vector<double> passes(stages->profiles.size());  // of a microbatch, through all of a stage
  for (std::size_t chunk = 0; chunk < stages->times.size(); ++chunk) {
    worker::StageTimes& times = stages->times[chunk];
    for (double* const part : {&times.forward, &times.backward, &times.weights}) *part *= microbatch;
    passes[chunk % passes.size()] += times.forward + times.backward;
  }
  std::vector<double> left;  // of a stage's exchange behind its last backward
  for (std::size_t s = 0; s < passes.size(); ++s) {
    const Result<prediction::StepPrediction> last =
        prediction::predict_step(stages->profiles[s], passes[s], form.network, form.plan);
    if (!last.ok()) return std::nullopt;
    left.push_back(last->exposed);
  }
  if (stashes_weights(config)) {
    return worker::pipeline_period(pipeline_place(config, 0), stages->times, form.network.alpha, left);
  }
  const auto seconds_of = [&](const worker::SharedTensor& shared) {
    return form.network.alpha +
           sizeof(float) * static_cast<double>(shared.range.size()) / form.network.bytes_per_second;
  };
  double step = 0;
  std::vector<double> begins(passes.size());
  for (int i = 0; i < kSteps; ++i) {
    std::vector<double> ends =
        worker::pipeline_ends(pipeline_place(config, 0), stages->times, form.network.alpha, begins);
    const double began = begins.front();
    for (const worker::SharedTensor& shared : stages->cut.shared) {
      double& end = ends[static_cast<std::size_t>(shared.owner)];
      end = std::max(end, ends[static_cast<std::size_t>(shared.borrower)] + seconds_of(shared));
    }
    for (std::size_t s = 0; s < ends.size(); ++s) begins[s] = ends[s] + left[s];
    for (const worker::SharedTensor& shared : stages->cut.shared) {
      double& borrower = begins[static_cast<std::size_t>(shared.borrower)];
      borrower = std::max(borrower, begins[static_cast<std::size_t>(shared.owner)] + seconds_of(shared));
    }
    step = begins.front() - began;
  }
  return step;
}

}  // namespace

std::optional<FormOfRun> form_of(const ResolvedRun& config) {
  return is_pipelined(config) ? std::nullopt : exchange_form_of(config);
}

std::optional<prediction::ModelProfile> profile_like(const ResolvedRun& config) {
  if (is_profile(config)) {
    Result<prediction::ModelProfile> profile = profile_of(config);
    return profile.ok() ? std::optional(std::move(*profile)) : std::nullopt;
  }
  const Result<ParamLayout> layout = layout_of(config);
  if (!layout.ok() || has_tables(*layout)) return std::nullopt;
  prediction::ModelProfile profile{.model = config.model};
  for (const TensorSpec& tensor : layout->tensors()) {
    const auto parameters = static_cast<std::int64_t>(tensor.range.size());
    profile.tensors.push_back({.name = tensor.name,
                               .shape = tensor.shape,
                               .parameters = parameters,
                               .forward_flops = 2.0 * static_cast<double>(parameters)});
  }
  return profile;
}

std::vector<double> seconds_to_next(const ResolvedRun& config) {
  const std::optional<SharedHosts> hosts = shared_hosts(config);
  if (!is_pipelined(config) || !config.shape || config.shape->bits_per_second <= 0) return {};
  if (!hosts || hosts->workers > 1) return {};
  const std::optional<prediction::ModelProfile> profile = profile_like(config);
  const std::optional<FormOfStages> stages = profile ? form_of_stages(config, *profile) : std::nullopt;
  std::vector<double> seconds;
  for (std::size_t chunk = 0; stages && chunk < stages->times.size(); ++chunk) {
    seconds.push_back(chunk + 1 < stages->times.size() ? stages->times[chunk].to_next : 0);
  }
  return seconds;
}

std::optional<double> predicted_rate(const ResolvedRun& config, double compute_seconds) {
  std::optional<FormOfRun> form = exchange_form_of(config);
  if (!form || !(compute_seconds > 0)) return std::nullopt;
  const std::optional<prediction::ModelProfile> profile = profile_like(config);
  if (!profile) return std::nullopt;
  std::optional<double> step = is_pipelined(config) ? pipelined_step(config, *profile, compute_seconds, *form)
                                                    : step_of(*profile, compute_seconds, *form);
  if (sums_among_workers(config) && config.collective == CollectiveKind::kBySize) {
    for (const Exchange exchange : {Exchange::kTree, Exchange::kHalvingDoubling, Exchange::kHierarchical}) {
      if (exchange == Exchange::kHierarchical && form->network.workers_per_host < 2) continue;
      form->plan.exchange = exchange;
      const std::optional<double> other = step_of(*profile, compute_seconds, *form);
      if (step && other) step = std::min(*step, *other);
    }
  }
  if (!step || !(*step > 0)) return std::nullopt;
  return static_cast<double>(config.workers) * config.batch_size / *step;
}

}  // namespace syncopate::experiments
