#include "experiments/checkpoint/checkpoint_interval.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace syncopate::experiments {
namespace {

constexpr std::int64_t kMostSteps = 1000000000;
constexpr double kLeastSeconds = 0.1, kMostSeconds = 1000000;

template <typename T>
std::optional<T> number_of(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<CheckpointInterval> CheckpointInterval::parse(std::string_view text) {
  if (text.ends_with('s')) {
    const std::optional<double> seconds = number_of<double>(text.substr(0, text.size() - 1));
    if (seconds && *seconds >= kLeastSeconds && *seconds <= kMostSeconds)
      return CheckpointInterval{.seconds = *seconds};
  } else {
    const std::optional<std::int64_t> steps = number_of<std::int64_t>(text);
    if (steps && *steps >= 1 && *steps <= kMostSteps) return CheckpointInterval{.steps = *steps};
  }
  return Status(Code::kInvalidArgument, fmt::format("must be {}", forms()));
}

const char* CheckpointInterval::forms() { return "STEPS (1 to 1000000000) or SECONDSs (0.1s to 1000000s)"; }

std::string CheckpointInterval::to_string() const {
  return steps > 0 ? fmt::format("{}", steps) : fmt::format("{}s", seconds);
}

}  // namespace syncopate::experiments
