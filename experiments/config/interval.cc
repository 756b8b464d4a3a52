#include "experiments/config/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "common/text/number.h"
#include "common/text/quantity.h"

namespace syncopate::experiments {
namespace {

constexpr double kLeastEpochs = 1e-4, kMostEpochs = 100000;

// Reads "0.5epochs" or "1epoch"; none: it is another form, or not a number.
std::optional<double> epochs_of(std::string_view text) {
  for (const std::string_view unit : {"epochs", "epoch"}) {
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(unit.size());
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    // This form rejects NaN, too.
    return value >= kLeastEpochs && value <= kMostEpochs ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

constexpr std::int64_t kLongestInterval = 1000000000;
constexpr double kLeastSeconds = 0.1, kMostSeconds = 1000000;

}  // namespace

Result<CheckpointInterval> CheckpointInterval::parse(std::string_view text) {
  if (const std::optional<double> epochs = epochs_of(text)) return CheckpointInterval{.epochs = *epochs};
  const std::optional<double> seconds = parse_time(text);
  if (seconds && *seconds >= kLeastSeconds && *seconds <= kMostSeconds) return CheckpointInterval{.seconds = *seconds};
  const std::optional<std::int64_t> steps = parse_number<std::int64_t>(text);
  if (steps && *steps >= 1 && *steps <= kLongestInterval) return CheckpointInterval{.steps = *steps};
  return Status::invalid_argument(fmt::format("must be {}", forms()));
}

const char* CheckpointInterval::forms() { return EvaluationInterval::forms(); }

std::string CheckpointInterval::to_string() const {
  return EvaluationInterval{.steps = steps, .seconds = seconds, .epochs = epochs}.to_string();
}

CheckpointInterval CheckpointInterval::in_steps(std::int64_t steps_per_epoch, std::int64_t period) const {
  if (epochs == 0) return *this;
  const double periods = epochs * static_cast<double>(steps_per_epoch) / static_cast<double>(period);
  return {.steps = std::max<std::int64_t>(1, std::llround(periods)) * period};
}

Result<EvaluationInterval> EvaluationInterval::parse(std::string_view text) {
  if (const Result<CheckpointInterval> same = CheckpointInterval::parse(text); same.ok()) {
    return EvaluationInterval{.steps = same->steps, .seconds = same->seconds, .epochs = same->epochs};
  }
  return Status::invalid_argument(fmt::format("must be {}", forms()));
}

const char* EvaluationInterval::forms() {
  return "STEPS (1 to 1000000000), a time (100ms to 1000000s) or EPOCHSepochs (0.0001epochs to 100000epochs)";
}

std::string EvaluationInterval::to_string() const {
  if (steps > 0) return fmt::format("{}", steps);
  if (seconds > 0) return fmt::format("{}s", seconds);
  return fmt::format("{}{}", epochs, epochs == 1 ? "epoch" : "epochs");
}

}  // namespace syncopate::experiments
