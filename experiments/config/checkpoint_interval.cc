#include "experiments/config/checkpoint_interval.h"

#include <fmt/format.h>

#include <optional>

#include "common/text/number.h"

namespace syncopate::experiments {
namespace {

constexpr std::int64_t kLongestInterval = 1000000000;
constexpr double kLeastSeconds = 0.1, kMostSeconds = 1000000;

}  // namespace

Result<CheckpointInterval> CheckpointInterval::parse(std::string_view text) {
  if (text.ends_with('s')) {
    const std::optional<double> seconds = parse_number<double>(text.substr(0, text.size() - 1));
    if (seconds && *seconds >= kLeastSeconds && *seconds <= kMostSeconds)
      return CheckpointInterval{.seconds = *seconds};
  } else {
    const std::optional<std::int64_t> steps = parse_number<std::int64_t>(text);
    if (steps && *steps >= 1 && *steps <= kLongestInterval) return CheckpointInterval{.steps = *steps};
  }
  return Status::invalid_argument(fmt::format("must be {}", forms()));
}

const char* CheckpointInterval::forms() { return "STEPS (1 to 1000000000) or SECONDSs (0.1s to 1000000s)"; }

std::string CheckpointInterval::to_string() const {
  return steps > 0 ? fmt::format("{}", steps) : fmt::format("{}s", seconds);
}

}  // namespace syncopate::experiments
