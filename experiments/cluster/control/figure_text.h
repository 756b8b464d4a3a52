// A loss, an accuracy or another figure of a test set, as people read it. Pure.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace syncopate::experiments {

// Returns "0.1234"; of what has grown beyond that form, as losses of a run do that has diverged, "1.5e+29".
inline std::string figure_text(double value) {
  constexpr double kMostInFull = 1e5;
  return std::abs(value) >= kMostInFull ? fmt::format("{:.6g}", value) : fmt::format("{:.4f}", value);
}

}  // namespace syncopate::experiments
