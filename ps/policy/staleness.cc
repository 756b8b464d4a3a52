#include "ps/policy/staleness.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace syncopate::ps {
namespace {

constexpr std::int64_t kRemembered = 100;
constexpr float kLargestLambda = 1000;
constexpr std::string_view kAdaptive = "adaptive:";

}  // namespace

Result<DelayCompensation> DelayCompensation::parse(std::string_view text) {
  DelayCompensation compensation;
  compensation.adaptive = text.starts_with(kAdaptive);
  const std::string_view number = compensation.adaptive ? text.substr(kAdaptive.size()) : text;
  const char* end = number.data() + number.size();
  const auto [parsed_to, error] = std::from_chars(number.data(), end, compensation.lambda);
  const bool in_range = compensation.lambda >= 0 && compensation.lambda <= kLargestLambda;  // NaN is not
  const bool is_none = compensation.lambda == 0 && compensation.adaptive;
  if (error != std::errc() || parsed_to != end || !in_range || is_none) {
    return Status::invalid_argument(
        fmt::format("'{}' is not LAMBDA or adaptive:LAMBDA with LAMBDA from 0 to {}", text, kLargestLambda));
  }
  return compensation;
}

std::string DelayCompensation::to_string() const { return fmt::format("{}{}", adaptive ? kAdaptive : "", lambda); }

float staleness_factor(std::int64_t staleness) {
  return 1.0f / static_cast<float>(std::max<std::int64_t>(1, staleness));
}

CorrectedMomentum corrected_momentum(float momentum, bool nesterov, double mean_staleness) {
  const double asked = momentum;
  const double asked_delay = (nesterov ? asked * asked : asked) / (1 - asked);
  const double left = std::max(0.0, asked_delay - mean_staleness);
  // Nesterov's: the root of m² + left · m - left.
  const double corrected = nesterov ? (std::sqrt(left * left + 4 * left) - left) / 2 : left / (1 + left);
  return {.momentum = static_cast<float>(corrected), .rate_factor = static_cast<float>((1 - corrected) / (1 - asked))};
}

void MeanStaleness::add(std::int64_t staleness) {
  count_ = std::min(count_ + 1, kRemembered);
  value_ += (static_cast<double>(staleness) - value_) / static_cast<double>(count_);
}

}  // namespace syncopate::ps
