#include "experiments/config/rules/rate_rule.h"

#include <fmt/format.h>

#include <string>

namespace syncopate::experiments {
namespace {

// Returns whether each worker trains weights of its own, which are averaged at intervals.
bool trains_replicas(const RunSettings& config) {
  return averages_weights(config) || (has_servers(config) && config.consistency.pushes_weights());
}

}  // namespace

const char* name_of(RateRule value) { return value == RateRule::kPerSample ? "per-sample" : "per-update"; }

Result<RateRule> parse_rate_rule(const std::string& text) {
  for (const RateRule rule : {RateRule::kPerSample, RateRule::kPerUpdate}) {
    if (text == name_of(rule)) return rule;
  }
  return Status::invalid_argument(fmt::format("--rate-rule={}: rate rule must be {} or {}", text,
                                              name_of(RateRule::kPerSample), name_of(RateRule::kPerUpdate)));
}

std::int64_t batches_an_update(const RunSettings& config, int workers) {
  if (!is_distributed(config)) return 1;
  if (sums_among_workers(config) || trains_replicas(config)) return workers;
  const int replicas = workers / stages_of(config);  // a push is of a replica's batches
  return std::int64_t{consistency_of(config).pushes_an_update(replicas, replicas)} * stages_of(config);
}

std::int64_t batches_an_update(const ResolvedRun& config) { return batches_an_update(config, config.workers); }

std::int64_t samples_an_update(const RunRequest& request) {
  return batches_an_update(request, workers_of(request)) * batch_size_of(request);
}

std::int64_t samples_an_update(const ResolvedRun& config) { return batches_an_update(config) * config.batch_size; }

double updates_a_pass(const ResolvedRun& config, std::int64_t training_samples) {
  return static_cast<double>(training_samples) / static_cast<double>(samples_an_update(config));
}

double ruled_rate(RateRule rule, double rate, std::int64_t samples, std::int64_t reference_samples) {
  if (rule == RateRule::kPerUpdate) return rate;
  if (samples == reference_samples) return rate;
  const double ruled = rate * static_cast<double>(samples) / static_cast<double>(reference_samples);
  return std::stod(fmt::format("{:.9g}", ruled));  // so that 0.1 x 3/4 is 0.075, as people read and write it
}

std::string why_not_linear(const ResolvedRun& config) {
  const int workers = config.workers;
  if (workers == 1) return {};  // one worker's batch: the factor is 1
  constexpr const char* kRemedy = "leave linear out, and give the rate with --learning-rate";
  if (trains_replicas(config)) {
    return fmt::format(
        "linear scales the rate by the growth of an update's minibatch, and here each worker makes updates of its own "
        "batch; {}",
        kRemedy);
  }
  if (has_servers(config) && batches_an_update(config) == 1) {
    return fmt::format(
        "linear scales the rate by the growth of an update's minibatch, and under --consistency={} an update is of "
        "one worker's batch; {}",
        config.consistency.to_string(), kRemedy);
  }
  if (config.global_batch_size) {
    return fmt::format(
        "linear scales the rate as the minibatch grows with the workers, and --global-batch-size={} holds it fixed; {}",
        *config.global_batch_size, kRemedy);
  }
  return {};
}

}  // namespace syncopate::experiments
