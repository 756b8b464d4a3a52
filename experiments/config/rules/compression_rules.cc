#include "experiments/config/rules/compression_rules.h"

#include <fmt/format.h>

#include <string>

#include "experiments/config/resolved_run.h"
#include "experiments/config/rules/table_rules.h"

namespace syncopate::experiments {
namespace {

Status check_codec(const ResolvedRun& config) {
  const ps::Compression compression = compression_of(config);
  if (compression.codec.kind == CodecKind::kPowerSgd) {
    return Status::invalid_argument(
        fmt::format("--compress={}: works by sums over all workers, which parameter servers have no rounds for; "
                    "use --mode=allreduce, or another codec",
                    to_string(config.compress)));
  }
  if (compression.of_answers() && staleness_of(config).compensation.enabled()) {
    return Status::invalid_argument(
        fmt::format("--delay-compensation={}: needs to know the weights that a worker has, of which it is sent "
                    "compressed differences; add --compress-answers=off",
                    config.delay_compensation.to_string()));
  }
  return {};
}

// In 1-bit Adam, workers go on from the momentum that all share.
Status check_one_bit_adam(const ResolvedRun& config) {
  if (!is_one_bit_adam(config)) return {};
  const std::string option = fmt::format("--adam-freeze-variance={}", *config.adam_freeze_variance);
  const std::string codec = fmt::format("--compress={}", to_string(config.compress));
  if (has_servers(config)) {
    return Status::invalid_argument(
        fmt::format("{}: with {} workers send momentum, which goes on from that of all (1-bit Adam); parameter servers "
                    "answer with weights, which do not tell it; use --mode=allreduce, or leave one of the two out",
                    option, codec));
  }
  if (has_tables(config)) {
    return Status::invalid_argument(
        fmt::format("{}: with {} a row of a table that is first touched later would have no variance (1-bit Adam); use "
                    "--embeddings=dense, or leave one of the two out",
                    option, codec));
  }
  if (config.steps && *config.adam_freeze_variance >= *config.steps) {
    return Status::invalid_argument(
        fmt::format("{}: must be fewer than --steps={}, or {} never begins (1-bit Adam); a sixth of all steps is usual",
                    option, *config.steps, codec));
  }
  return {};
}

// What is sent is a part of the velocities, which do not include what the update adds to a gradient.
Status check_momentum(const ResolvedRun& config) {
  if (codec_of(config).kind == CodecKind::kTopK && !config.steps && config.compress_warmup >= config.epochs) {
    return Status::invalid_argument(
        fmt::format("--compress-warmup={}: must be fewer than the {} epochs, or {} is never come to",
                    config.compress_warmup, config.epochs, to_string(config.compress)));
  }
  if (!corrects_momentum(config)) return {};
  const std::string option = fmt::format("--compress-momentum={}", name_of(config.compress_momentum));
  if (config.weight_decay > 0) {
    return Status::invalid_argument(
        fmt::format("{}: the velocity is the workers' own, and --weight-decay={} would be left out of it; "
                    "leave one of them out",
                    option, config.weight_decay));
  }
  if (has_servers(config) && config.momentum_correction) {
    return Status::invalid_argument(
        fmt::format("{}: servers then have no momentum that --momentum-correction could correct; leave one "
                    "of them out",
                    option));
  }
  if (has_tables(config)) {
    return Status::invalid_argument(
        fmt::format("{}: rows of tables go uncompressed, and would have no momentum; use "
                    "--embeddings=dense",
                    option));
  }
  return {};
}

}  // namespace

Status validate_compression(const ResolvedRun& config) {
  SYNCOPATE_RETURN_IF_ERROR(check_codec(config));
  SYNCOPATE_RETURN_IF_ERROR(check_momentum(config));
  return check_one_bit_adam(config);
}

}  // namespace syncopate::experiments
