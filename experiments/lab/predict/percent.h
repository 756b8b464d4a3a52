// Fractions as percent. Pure.
#pragma once

#include <fmt/format.h>

#include <string>

namespace syncopate::experiments {

// Returns, for example, "12.3 %" of 0.123.
inline std::string percent(double fraction) { return fmt::format("{:.1f} %", fraction * 100); }

}  // namespace syncopate::experiments
