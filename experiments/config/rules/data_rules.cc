#include "experiments/config/rules/data_rules.h"

#include <fmt/format.h>

#include <string>

#include "experiments/config/rules/table_rules.h"

namespace syncopate::experiments {
namespace {

Status validate_last_batch(const ResolvedRun& config) {
  if (config.drop_last || is_profile(config)) return {};
  const auto refused = [](const std::string& why) {
    return Status::invalid_argument(fmt::format("--drop-last=off: {}", why));
  };
  if (has_samples_of_its_own(config)) {
    return refused(
        "the samples that are left would be of some workers' parts alone; leave it out, or use --shard=random and "
        "--shuffle=global or off");
  }
  if (is_recommender(config)) {
    return refused(fmt::format("{} looks up the rows of full batches alone; leave it out", config.model));
  }
  if (config.model.starts_with("resnet")) {
    return refused("batch norms would take empty places for samples; leave it out, or use a model without them");
  }
  if (config.device == DeviceKind::kCuda) {
    return refused("full batches alone are copied to a GPU; leave it out, or use --device=cpu");
  }
  return {};
}

}  // namespace

Status validate_data_order(const ResolvedRun& config) {
  if (const std::size_t at = config.model.find(worker::kInitSuffix); at != std::string::npos) {
    return Status::invalid_argument(fmt::format("--model={}: name the model alone, and use --init={}", config.model,
                                                config.model.substr(at + worker::kInitSuffix.size())));
  }
  const worker::Shuffle shuffle = shuffle_of(config);
  if (shards_by_label(config) && (shuffle == worker::Shuffle::kShard || shuffle == worker::Shuffle::kWorker)) {
    return Status::invalid_argument(
        fmt::format("--shuffle={}: says which samples a worker has, and so does --shard=labels; give one of the two",
                    name_of(config.shuffle)));
  }
  return validate_last_batch(config);
}

}  // namespace syncopate::experiments
