#include "experiments/checkpoint/run_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/text/printable_text.h"
#include "experiments/checkpoint/checksum.h"
#include "experiments/config/options/option_table.h"
#include "ps/server/shard_state.h"

namespace syncopate::experiments {
namespace {

constexpr std::array kDeciding{"mode",
                               "workers",
                               "consistency",
                               "backup-workers",
                               "elastic-alpha",
                               "staleness-lr",
                               "delay-compensation",
                               "momentum-correction",
                               "compress",
                               "compress-answers",
                               "int8-rounding",
                               "compress-warmup",
                               "compress-momentum",
                               "compress-decay",
                               "sync-every",
                               "outer-momentum",
                               "outer-rate",
                               "outer-nesterov",
                               "sync-fragments",
                               "sync-overlap",
                               "gossip",
                               "model",
                               "dataset",
                               "train-samples",
                               "target",
                               "ignore",
                               "task",
                               "test-data",
                               "test-fraction",
                               "normalise",
                               "image-size",
                               "validation",
                               "context",
                               "vocabulary",
                               "classes",
                               "table-rows",
                               "embeddings",
                               "augment",
                               "shard",
                               "shuffle",
                               "drop-last",
                               "pixel-scale",
                               "optimizer",
                               "learning-rate",
                               "lr-schedule",
                               "momentum",
                               "beta1",
                               "beta2",
                               "epsilon",
                               "weight-decay",
                               "decay-all",
                               "adam-freeze-variance",
                               "initial-accumulator",
                               "l1",
                               "l2",
                               "ftrl-beta",
                               "seed",
                               "data-seed"};

}  // namespace

std::map<std::string, std::string> facts_of(const ResolvedRun& config, const ParamLayout& layout,
                                            std::int64_t steps_per_epoch) {
  std::map<std::string, std::string> facts;
  for (const OptionSpec& option : option_table()) {
    if (std::ranges::find(kDeciding, option.name) == kDeciding.end() || !option.has_effect(config)) continue;
    if (const std::string value = option.get(config); !value.empty()) facts["--" + option.name] = value;
  }
  facts["--workers"] = fmt::format("{}", config.workers);
  facts["--batch-size"] = fmt::format("{}", config.batch_size);
  facts["layout"] = checksum_text(layout.hash());
  // Other schedules do not depend on the length of the run.
  if (config.lr_schedule.shape == LearningRateSchedule::Shape::kCosine) {
    const std::int64_t total = total_steps_of(config, steps_per_epoch);
    facts[kLengthFact] = fmt::format("{}", total);
  }
  return facts;
}

Status check_steps_left(std::int64_t step, std::int64_t total_steps) {
  if (step < total_steps) return {};
  return Status::invalid_argument(
      fmt::format("is of step {}, and the run has {} steps: nothing is left to train", step, total_steps));
}

bool has_state_of_its_own(const ResolvedRun& config) {
  const bool has_weights = averages_weights(config) || (has_servers(config) && config.consistency.pushes_weights());
  return has_weights || (may_compress(config) && compresses(config));
}

std::optional<Share> share_of_worker(const ResolvedRun& config, bool has_local_state, bool is_chief) {
  if (is_chief && (replicates_state(config) || is_hybrid(config))) return Share::kAll;  // that servers do not have
  if (shards_state(config)) return Share::kAll;  // each worker has other parts of it
  if (averages_weights(config)) return Share::kReplica;
  if (has_local_state || has_state_of_its_own(config)) return Share::kOwnOnly;
  return std::nullopt;
}

bool moves_together(const ResolvedRun& config) { return !goes_at_own_pace(config); }

std::vector<std::string> checkpoint_writers(const ResolvedRun& config, bool has_local_state,
                                            const std::vector<int>& workers) {
  std::vector<std::string> writers;
  for (const int worker : workers) {
    const bool is_chief = divides_model(config) ? model_place(config, worker).replica == 0 : worker == workers.front();
    if (share_of_worker(config, has_local_state, is_chief)) writers.push_back(worker_writer(worker));
  }
  const int shards = has_servers(config) ? static_cast<int>(shards_of(config)) : 0;
  for (int shard = 0; shard < shards; ++shard) writers.push_back(shard_writer(shard));
  return writers;
}

std::string worker_writer(int rank) { return fmt::format("worker-{}", rank); }
std::string shard_writer(int shard) { return fmt::format("shard-{}", shard); }

std::int64_t batches_done(const Manifest& manifest, const ResolvedRun& config) {
  const int replicas = model_replicas(config);
  const int pushes_an_update = config.consistency.pushes_an_update(replicas, replicas);
  std::optional<std::int64_t> least;
  for (const StoredPart& part : manifest.parts) {
    const std::optional<std::int64_t> pushes = ps::pushes_applied(part.counts, pushes_an_update);
    if (pushes) least = std::min(least.value_or(*pushes), *pushes);
  }
  if (!least) return manifest.step * config.workers;
  return *least * config.consistency.period() * (config.workers / replicas);
}

}  // namespace syncopate::experiments
