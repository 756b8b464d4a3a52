#include "experiments/config/rules/table_rules.h"

#include <fmt/format.h>

#include <string>

#include "common/text/list_text.h"
#include "worker/data/dataset_names.h"
#include "worker/recommender/make_recommender.h"

namespace syncopate::experiments {
namespace {

constexpr const char* kWayOut = "leave it out, or use --embeddings=dense";

Status no(const std::string& option, const std::string& reason, const std::string& way_out = kWayOut) {
  return Status::invalid_argument(fmt::format("{}: {}; {}", option, reason, way_out));
}

Status validate_ps(const ResolvedRun& config) {
  const auto serves_tables = [](const ps::ConsistencyTraits& traits) { return traits.tables; };
  const ps::ConsistencyTraits& traits = config.consistency.traits();
  if (!serves_tables(traits)) {
    return no("--consistency=" + config.consistency.to_string(),
              "servers update a row-sparse table in step or push by push",
              fmt::format("use {}, or --embeddings=dense", list_text(ps::consistency_usages(serves_tables), "or")));
  }
  if (traits.backup_workers && config.backup_workers > 0) {
    return no(fmt::format("--backup-workers={}", config.backup_workers),
              "an update of a row-sparse table is of all workers' gradients");
  }
  const bool is_stale = traits.applies_stale_gradients();
  if (is_stale && config.staleness_lr != StalenessRate::kKeep) {
    return no(fmt::format("--staleness-lr={}", name_of(config.staleness_lr)), "rows are updated at the rate as it is");
  }
  if (is_stale && config.delay_compensation.lambda != 0) {
    return no("--delay-compensation=" + config.delay_compensation.to_string(),
              "no copies of rows are kept to correct them by");
  }
  if (is_stale && config.momentum_correction) return no("--momentum-correction", "rows have the momentum as it is");
  if (may_run_ahead(config) && config.pipeline_depth > 0) {
    return no(fmt::format("--pipeline-depth={}", config.pipeline_depth),
              "rows are asked for in the step that reads them");
  }
  if (may_order_pushes(config) && config.push_order != ps::PushOrder::kFifo) {
    return no("--push-order=priority", "a table's rows are pushed when backward has finished them");
  }
  return {};
}

Status validate_allreduce(const ResolvedRun& config) {
  if (shards_state(config)) return no(fmt::format("--mode={}", name_of(config.mode)), "tables have no shares");
  if (config.gossip != Gossip::kOff)
    return no("--gossip", "weights are averaged as a whole, and a row-sparse table has no whole");
  if (config.sync_every > 1) {
    return no(fmt::format("--sync-every={}", config.sync_every),
              "weights are averaged as a whole, and a row-sparse table has no whole");
  }
  return {};
}

}  // namespace

bool is_recommender(const RunSettings& config) { return worker::is_recommender(config.model); }

bool has_tables(const RunSettings& config) {
  return is_recommender(config) && config.embeddings == worker::EmbeddingKind::kSparse;
}

bool sizes_tables(const RunSettings& config) {
  const worker::DatasetTraits* const traits = worker::find_dataset(config.dataset);
  return traits != nullptr && traits->sizes_tables;
}

Status validate_tables(const ResolvedRun& config) {
  if (!is_recommender(config)) return {};
  if (config.device == DeviceKind::kCuda) {
    return Status::invalid_argument(
        fmt::format("--device=cuda: {} looks its rows up in the host's memory; use --device=cpu", config.model));
  }
  if (sums_among_workers(config) && is_nccl(config.collective)) {
    return Status::invalid_argument(
        fmt::format("--collective={}: sums on GPUs, and {} computes on the processor; use direct, ring or mpi",
                    name_of(config.collective), config.model));
  }
  if (config.model.ends_with(worker::kDenseSuffix)) {
    return Status::invalid_argument(
        fmt::format("--model={}: name the model alone, and use --embeddings=dense", config.model));
  }
  if (!has_tables(config)) return {};
  if (has_servers(config)) return validate_ps(config);
  return sums_among_workers(config) ? validate_allreduce(config) : Status();
}

}  // namespace syncopate::experiments
