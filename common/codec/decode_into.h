// What happens to a decoded value: it replaces the value that is there, is added to it, or is subtracted.
#pragma once

#include <type_traits>

namespace syncopate::codec {

enum class Into { kReplace, kAdd, kSubtract };

template <Into kInto>
void put(float value, float& place) {
  if constexpr (kInto == Into::kReplace) {
    place = value;
  } else if constexpr (kInto == Into::kAdd) {
    place += value;
  } else {
    place -= value;
  }
}

// Calls body(std::integral_constant<Into, ...>), so that a loop is compiled once for each value.
template <typename Body>
void with_constant(Into into, Body&& body) {
  switch (into) {
    case Into::kReplace:
      return body(std::integral_constant<Into, Into::kReplace>());
    case Into::kAdd:
      return body(std::integral_constant<Into, Into::kAdd>());
    case Into::kSubtract:
      return body(std::integral_constant<Into, Into::kSubtract>());
  }
}

}  // namespace syncopate::codec
