// The commands that start nothing, which the lab answers by itself.
#pragma once

#include <algorithm>
#include <string_view>

namespace syncopate::experiments {

inline constexpr std::string_view kPredictionCommands[] = {"reproduce", "predict", "advise"};

// The command that reads finished runs.
inline constexpr std::string_view kWhyCommand = "why";

inline bool is_prediction_command(std::string_view word) {
  return std::ranges::find(kPredictionCommands, word) != std::end(kPredictionCommands);
}

}  // namespace syncopate::experiments
