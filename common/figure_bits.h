// Figures as 64 bits, in which they travel: a whole number itself, a duration or a time in nanoseconds, a real by its
// own bits. An optional duration that is not there is -1. Pure.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "common/clock.h"

namespace syncopate {

template <typename T>
std::int64_t bits_of(const T& value) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::int64_t>(value);
  } else if constexpr (std::is_same_v<T, TimePoint>) {
    return value.time_since_epoch().count();
  } else if constexpr (std::is_same_v<T, Duration>) {
    return value.count();
  } else if constexpr (std::is_same_v<T, std::optional<Duration>>) {
    return value ? value->count() : -1;
  } else {
    return static_cast<std::int64_t>(value);
  }
}

template <typename T>
void set_bits(std::int64_t bits, T& value) {
  if constexpr (std::is_same_v<T, double>) {
    value = std::bit_cast<double>(bits);
  } else if constexpr (std::is_same_v<T, std::optional<Duration>>) {
    value = bits < 0 ? std::nullopt : std::optional(Duration(bits));
  } else if constexpr (std::is_same_v<T, TimePoint>) {
    value = TimePoint(Duration(bits));
  } else {
    value = static_cast<T>(bits);
  }
}

}  // namespace syncopate
