#include "experiments/lab/run/run_prediction.h"

#include <algorithm>

#include "allreduce/strategy/sharded_strategy.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/config/profile_choice.h"
#include "prediction/asynchronous_prediction.h"

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
  const bool is_mixed = shared.holds_servers && has_servers_apart && !has_spare_servers(config);
  return is_mixed ? std::nullopt : std::optional(shared);
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
  if (has_spare_servers(config)) form.plan.spare_servers = config.spare_servers;
  form.plan.servers = config.servers - form.plan.spare_servers;
  form.plan.aggregated = aggregates_on_hosts(config);
  form.plan.sharding =
      config.sharding == ps::ShardingPolicy::kWhole ? prediction::Sharding::kWhole : prediction::Sharding::kEven;
  return form.plan.spare_servers == 0 || form.plan.sharding == prediction::Sharding::kEven;
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
  // Tables have no form, nor have sums within the passes of stages, nor servers whose links several stages share.
  if (is_hybrid(config) || runs_command(config)) return std::nullopt;
  if (is_pipelined(config) && (has_servers(config) || splits_layers(config))) return std::nullopt;
  const std::optional<SharedHosts> hosts = shared_hosts(config);
  if (!hosts) return std::nullopt;
  FormOfRun form{.network = {.alpha = seconds(config.shape->delay),
                             .bytes_per_second = config.shape->payload_bytes_per_second(),
                             .workers = config.workers,
                             .workers_per_host = hosts->workers}};
  form.plan.colocated = hosts->holds_servers;
  if (divides_model(config)) form.network.workers = model_replicas(config);
  const bool has_form = has_servers(config) ? set_servers(config, form) : set_allreduce(config, form);
  return has_form ? std::optional(form) : std::nullopt;
}

// Returns what a form of a divided model says of a run; none where there is no form.
auto of_division(const ResolvedRun& config, double compute, auto predict) {
  const std::optional<FormOfRun> form = exchange_form_of(config);
  const std::optional<prediction::ModelProfile> profile = form ? profile_like(config) : std::nullopt;
  if (profile) return predict(config, *profile, compute, form->network, form->plan);
  return decltype(predict(config, *profile, compute, form->network, form->plan))();
}

}  // namespace

std::optional<FormOfRun> form_of(const ResolvedRun& config) {
  return divides_model(config) ? std::nullopt : exchange_form_of(config);
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

std::string stages_text(const ResolvedRun& config) {
  const std::optional<prediction::ModelProfile> profile = is_pipelined(config) ? profile_like(config) : std::nullopt;
  return profile ? stages_text(config, *profile) : std::string();
}

std::vector<double> seconds_to_next(const ResolvedRun& config) {
  const std::optional<SharedHosts> hosts = shared_hosts(config);
  if (!is_pipelined(config) || !config.shape || config.shape->bits_per_second <= 0) return {};
  if (!hosts || hosts->workers > 1) return {};
  const std::optional<prediction::ModelProfile> profile = profile_like(config);
  return profile ? seconds_to_next(config, *profile, config.shape->payload_bytes_per_second()) : std::vector<double>();
}

std::optional<PipelinePrediction> predicted_pipeline(const ResolvedRun& config, double compute_seconds) {
  return of_division(config, compute_seconds, predict_pipeline);
}

std::optional<PartsPrediction> predicted_parts(const ResolvedRun& config, double compute_seconds) {
  return of_division(config, compute_seconds, predict_parts);
}

std::optional<double> predicted_rate(const ResolvedRun& config, double compute_seconds) {
  std::optional<FormOfRun> form = exchange_form_of(config);
  if (!form || splits_layers(config) || !(compute_seconds > 0)) return std::nullopt;
  const std::optional<prediction::ModelProfile> profile = profile_like(config);
  if (!profile) return std::nullopt;
  std::optional<double> step;
  if (is_pipelined(config)) {
    const auto pipeline = predict_pipeline(config, *profile, compute_seconds, form->network, form->plan);
    if (pipeline) step = pipeline->step;
  } else {
    step = step_of(*profile, compute_seconds, *form);
  }
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
