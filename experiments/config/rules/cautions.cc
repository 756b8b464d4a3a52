#include "experiments/config/rules/cautions.h"

#include <fmt/format.h>

namespace syncopate::experiments {
namespace {

// Returns whether the codec changes the values of a gradient relative to each other: it sends few large ones, or gives
// all values of a chunk the same magnitude. After 150 steps of lenet under adam (allreduce, two workers): none 0.983,
// sign 0.960, topk:0.01 0.942, randomk:0.01 0.546; int8 0.982, powersgd:4 0.976. With 1-bit Adam they cost far less:
// common/codec/README.md.
bool changes_magnitudes(CodecKind kind) {
  return kind == CodecKind::kSign || kind == CodecKind::kTopK || kind == CodecKind::kRandomK;
}

}  // namespace

std::vector<std::string> cautions(const ResolvedRun& config) {
  std::vector<std::string> lines;
  if (has_moments(traits_of(config.optimizer)) && changes_magnitudes(codec_of(config).kind) &&
      !is_one_bit_adam(config)) {
    lines.push_back(fmt::format(
        "--compress={} with --optimizer={} is likely to cost accuracy: {} divides by the size of what arrives, which "
        "this codec changes; --adam-freeze-variance=STEPS, with a sixth of all steps, does not{} (1-bit Adam), nor do "
        "--optimizer=sgd or momentum",
        to_string(config.compress), name_of(config.optimizer), name_of(config.optimizer),
        config.mode == Mode::kAllreduce ? "" : " under --mode=allreduce"));
  }
  return lines;
}

}  // namespace syncopate::experiments
