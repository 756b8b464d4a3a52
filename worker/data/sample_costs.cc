#include "worker/data/sample_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/random.h"
#include "common/text/number.h"

namespace syncopate::worker {
namespace {

constexpr std::uint64_t kStreamOfCosts = 0x636F7374ull << 32;  // apart from the streams of weights and of order
constexpr std::string_view kZipf = "zipf", kLognormal = "lognormal";
constexpr double kUsualExponent = 1, kLargestExponent = 4, kLargestSigma = 2;

const double kLogOfLongest = std::log(1024.0);

// The integral of x^power from 1 to the longest length.
double integral(double power) {
  const double above = power + 1;
  return above == 0 ? kLogOfLongest : std::expm1(above * kLogOfLongest) / above;
}

// The length below which a part `quantile` of all lie.
double zipf_length(double exponent, double quantile) {
  const double up_to = quantile * integral(-exponent), above = 1 - exponent;
  return std::exp(above == 0 ? up_to : std::log1p(above * up_to) / above);
}

}  // namespace

std::string SampleCosts::forms() {
  return fmt::format("zipf, zipf:EXPONENT (above 0 to {:g}) or lognormal:SIGMA (above 0 to {:g})", kLargestExponent,
                     kLargestSigma);
}

Result<SampleCosts> SampleCosts::parse(std::string_view text) {
  SampleCosts costs;
  if (text.empty()) return costs;
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  const bool is_zipf = name == kZipf;
  std::optional<double> parameter = kUsualExponent;
  if (colon < text.size() || !is_zipf) {
    parameter = parse_number<double>(text.substr(std::min(colon + 1, text.size())));
  }
  const double largest = is_zipf ? kLargestExponent : kLargestSigma;
  if ((!is_zipf && name != kLognormal) || !parameter || !(*parameter > 0 && *parameter <= largest)) {
    return Status::invalid_argument(fmt::format("costs must be {}", forms()));
  }
  costs.kind_ = is_zipf ? Kind::kZipf : Kind::kLognormal;
  costs.parameter_ = *parameter;
  return costs;
}

std::string SampleCosts::to_string() const {
  return are_equal() ? "" : fmt::format("{}:{}", kind_ == Kind::kZipf ? kZipf : kLognormal, parameter_);
}

double SampleCosts::of(std::uint64_t seed, std::int64_t sample) const {
  if (are_equal()) return 1;
  Random random(seed, kStreamOfCosts + static_cast<std::uint64_t>(sample));
  if (kind_ == Kind::kLognormal) return std::exp(parameter_ * random.normal() - parameter_ * parameter_ / 2);
  const double mean = integral(1 - parameter_) / integral(-parameter_);
  return zipf_length(parameter_, random.uniform()) / mean;
}

}  // namespace syncopate::worker
