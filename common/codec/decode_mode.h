// What happens to a decoded value: it replaces the value that is there, is added to it, or is subtracted.
#pragma once

#include <type_traits>

namespace syncopate::codec {

enum class DecodeMode { kReplace, kAdd, kSubtract };

template <DecodeMode kMode>
void put(float value, float& place) {
  if constexpr (kMode == DecodeMode::kReplace) {
    place = value;
  } else if constexpr (kMode == DecodeMode::kAdd) {
    place += value;
  } else {
    place -= value;
  }
}

// Calls body(std::integral_constant<DecodeMode, ...>), so that a loop is compiled once for each value.
template <typename Body>
void with_constant(DecodeMode mode, Body&& body) {
  switch (mode) {
    case DecodeMode::kReplace:
      return body(std::integral_constant<DecodeMode, DecodeMode::kReplace>());
    case DecodeMode::kAdd:
      return body(std::integral_constant<DecodeMode, DecodeMode::kAdd>());
    case DecodeMode::kSubtract:
      return body(std::integral_constant<DecodeMode, DecodeMode::kSubtract>());
  }
}

}  // namespace syncopate::codec
