#include "experiments/config/cautions.h"

#include <fmt/format.h>

namespace syncopate::experiments {
namespace {

// Those that change how large a gradient's values are beside each other: most of them come in few large pieces, or all
// as large as the rest of their chunk.
bool changes_magnitudes(CodecKind kind) { return needs_error_feedback(kind); }

}  // namespace

std::vector<std::string> cautions(const RunConfig& config) {
  std::vector<std::string> lines;
  const bool is_adam = config.optimizer == "adam" || config.optimizer == "adamw";
  if (is_adam && changes_magnitudes(codec_of(config).kind)) {
    lines.push_back(fmt::format(
        "--compress={} with --optimizer={} is likely to cost accuracy: {} divides by the size of what arrives, which "
        "this codec changes; --optimizer=sgd or momentum do not",
        to_string(config.compress), config.optimizer, config.optimizer));
  }
  return lines;
}

}  // namespace syncopate::experiments
