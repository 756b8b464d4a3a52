#include "experiments/lab/report/summary_json.h"

#include <iterator>
#include <nlohmann/json.hpp>

#include "common/finite.h"
#include "experiments/lab/report/report_json.h"
#include "experiments/lab/report/statistics.h"

namespace syncopate::experiments {
namespace {

std::int64_t total_of(const std::map<std::string, std::int64_t>& counts) {
  std::int64_t total = 0;
  for (const auto& [name, count] : counts) total += count;
  return total;
}

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json sharding_json(const ShardingReport& report) {
  return {{"policy", name_of(report.sharding.policy)},
          {"chunk_bytes", report.sharding.chunk_bytes},
          {"skew", report.loads.skew},
          {"bytes", report.loads.bytes},
          {"chunks", report.loads.chunks}};
}

Json checkpoints_json(const CheckpointFigures& figures) {
  return {{"asked", figures.asked},
          {"completed", figures.completed},
          {"left_out", figures.left_out},
          {"why_left_out", figures.left_out > 0 ? Json(figures.why_left_out) : Json(nullptr)},
          {"last_step", or_null(figures.last_step)},
          {"stall_seconds", seconds(figures.stall)}};
}

Json evaluations_json(const EvaluationRecord& record) {
  return {
      {"every", record.every}, {"weights", record.weights}, {"points", record.points}, {"evaluated", record.evaluated}};
}

std::optional<double> seconds_of(const std::optional<Duration>& duration) {
  return duration ? std::optional(seconds(*duration)) : std::nullopt;
}

Json faults_json(std::span<const FaultRecord> faults) {
  Json all = Json::array();
  for (const FaultRecord& fault : faults) {
    all.push_back({{"fault", fault.fault},
                   {"outcome", fault.outcome},
                   {"done", fault.at.has_value()},
                   {"repeat", fault.repeat},
                   {"step", or_null(fault.step)},
                   {"training_seconds", fault.at ? Json(fault.training_seconds) : Json(nullptr)},
                   {"seconds_to_first_step", or_null(seconds_of(fault.recovery.first))},
                   {"seconds_to_all_steps", or_null(seconds_of(fault.recovery.all))}});
  }
  return all;
}

Json health_json(const HealthRecord& health) {
  using Quantity = worker::NotFinite::Quantity;
  static constexpr const char* kQuantities[] = {"rate", "weights", "batch", "gradient", "loss"};
  static_assert(std::size(kQuantities) == static_cast<std::size_t>(Quantity::kLoss) + 1);
  const worker::NotFinite& first = health.first;
  return {{"first",
           {{"text", to_text(health)},
            {"process", health.process},
            {"step", first.step},
            {"quantity", kQuantities[static_cast<std::size_t>(first.quantity)]},
            {"tensor", first.tensor.empty() ? Json(nullptr) : Json(first.tensor)},
            {"value", name_of_not_finite(first.value)}}},
          {"on_nan", name_of(health.on_nan)},
          {"left_out_steps", health.left_out}};
}

Json json_of(const HostEnvironment& host) {
  return {{"name", host.name},         {"workers", host.workers},       {"servers", host.servers},
          {"own_name", host.own_name}, {"kernel", host.kernel},         {"cpu_model", host.cpu_model},
          {"cores", host.cores},       {"memory_gib", host.memory_gib}, {"vector_set", host.vector_set},
          {"gpus", host.gpus}};
}

}  // namespace

std::string summary_json(std::span<const RunReport> reports, const RunFacts& facts) {
  Json summary = {
      {"run", facts.run_id}, {"outcome", facts.outcome}, {"events", facts.events}, {"facts", facts.of_workers}};
  if (facts.evaluations) {
    summary["evaluations"] = evaluations_json(*facts.evaluations);
    if (const std::string missing = not_evaluated_text(*facts.evaluations); !missing.empty()) {
      summary["not_evaluated"] = missing;
    }
  }
  if (!facts.straggler.empty()) summary["straggler"] = facts.straggler;
  if (!facts.faults.empty()) summary["faults"] = faults_json(facts.faults);
  if (!facts.data.empty()) summary["data"] = facts.data;
  summary["not_finite"] = facts.health ? health_json(*facts.health) : Json(nullptr);
  if (facts.best_loss) summary["best_reachable_loss"] = *facts.best_loss;
  if (!facts.link.empty()) summary["link"] = facts.link;
  if (facts.simulation) {
    summary["simulated"] = {{"wall_seconds", facts.simulation->wall_seconds},
                            {"events", facts.simulation->events},
                            {"compute", facts.simulation->compute},
                            {"processing", facts.simulation->processing},
                            {"network", facts.simulation->network},
                            {"profile", facts.simulation->profile},
                            {"cluster", facts.simulation->cluster},
                            {"without_time", facts.simulation->without_time},
                            {"timeout", facts.simulation->timeout}};
  }
  summary["parameters"] = facts.parameters;
  summary["steps_per_epoch"] = facts.steps_per_epoch;
  summary["seeds"] = facts.seeds;
  summary["peak_memory_bytes"] = facts.peak_memory;
  summary["rejected_connections"] = total_of(facts.rejected_connections);
  if (!facts.rejected_connections.empty()) summary["rejected_connections_at"] = facts.rejected_connections;
  if (facts.sharding) summary["sharding"] = sharding_json(*facts.sharding);
  if (facts.checkpoints) summary["checkpoints"] = checkpoints_json(*facts.checkpoints);
  if (!facts.resumed_from.empty()) {
    summary["resumed_from"] = {{"checkpoint", facts.resumed_from},
                               {"step", facts.resumed_at},
                               {"samples", facts.resumed_samples},
                               {"seconds", or_null(facts.resumed_seconds)}};
  }
  if (facts.trace) {
    summary["trace"] = {{"file", facts.trace->file},
                        {"first_step", facts.trace->steps.first},
                        {"last_step", facts.trace->steps.last},
                        {"events", facts.trace->events},
                        {"dropped", facts.trace->dropped}};
  }
  Json uncertainty = Json::object();
  for (const auto& [process, duration] : facts.clock_uncertainty) uncertainty[process] = microseconds(duration);
  summary["clock_uncertainty_us"] = uncertainty;
  std::vector<double> throughputs;
  for (const RunReport& report : reports) {
    if (report.samples_per_second) throughputs.push_back(*report.samples_per_second);
  }
  if (!reports.empty()) {
    const Spread spread = spread_of(throughputs);
    summary["repeats"] = reports.size();
    summary.update(report_json(middle_report(reports)));
    if (!throughputs.empty()) {
      summary["samples_per_second"] = spread.median;
      summary["samples_per_second_min"] = spread.least;
      summary["samples_per_second_max"] = spread.most;
    }
  }
  Json each = Json::array();
  for (const RunReport& report : reports) each.push_back(report_json(report));
  summary["each_repeat"] = each;
  return summary.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string environment_json(const Environment& environment, const ResolvedRun& config) {
  Json hosts = Json::array();
  for (const HostEnvironment& host : environment.hosts) hosts.push_back(json_of(host));
  const Json json = {{"host", environment.host},
                     {"kernel", environment.kernel},
                     {"cpu_model", environment.cpu_model},
                     {"cores", environment.cores},
                     {"core_quota", or_null(environment.core_quota)},
                     {"memory_gib", environment.memory_gib},
                     {"version", environment.version},
                     {"sources", environment.sources},
                     {"compiler", environment.compiler},
                     {"build", environment.build},
                     {"vector_set", environment.vector_set},
                     {"sanitizers", environment.sanitizers},
                     {"commit", environment.commit},
                     {"libraries", environment.libraries},
                     {"hosts", hosts},
                     {"encrypted", exchanges_between_hosts(config)},
                     {"launcher", name_of(config.launcher)},
                     {"transport", transport_that_runs(config)},
                     {"device", name_of(config.device)},
                     {"gpus", environment.gpus},
                     {"shared_gpu", config.share_gpu},
                     {"staged", is_staged(config)},
                     {"cuda_graphs", captures_steps(config)},
                     {"precision", name_of(config.precision)},
                     {"backend", config.device == DeviceKind::kCuda ? "cuda" : name_of(config.backend)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace syncopate::experiments
