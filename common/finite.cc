#include "common/finite.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "common/os/target_clones.h"

namespace syncopate {
namespace {

constexpr std::uint32_t kExponent = 0x7f800000;  // all of its bits are set in NaN and infinities

// Whole numbers have no order to keep, so that the loop becomes one of vectors.
SYNCOPATE_CLONES std::uint32_t largest_exponent(const float* values, std::size_t count) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(values[i]) & kExponent);
  }
  return largest;
}

}  // namespace

bool all_finite(std::span<const float> values) { return largest_exponent(values.data(), values.size()) != kExponent; }

std::optional<std::size_t> first_not_finite(std::span<const float> values) {
  const auto found = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
  return found == values.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - values.begin()));
}

std::string name_of_not_finite(double value) { return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; }

}  // namespace syncopate
