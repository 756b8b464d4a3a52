// The commands that the lab answers by itself: all but the last start nothing.
#pragma once

#include <algorithm>
#include <string_view>

namespace syncopate::experiments {

inline constexpr std::string_view kPredictionCommands[] = {"reproduce", "predict", "advise"};

// The commands that read finished runs.
inline constexpr std::string_view kWhyCommand = "why";
inline constexpr std::string_view kReportCommand = "report";

// The command that evaluates a run's weights.
inline constexpr std::string_view kEvaluateCommand = "evaluate";

inline bool reads_finished_runs(std::string_view word) {
  return word == kWhyCommand || word == kReportCommand || word == kEvaluateCommand;
}

// The command that examines hosts.
inline constexpr std::string_view kDoctorCommand = "doctor";

// The commands about runs that are under way.
inline constexpr std::string_view kPsCommand = "ps";
inline constexpr std::string_view kStopCommand = "stop";

// The command that runs demonstrations.
inline constexpr std::string_view kDemoCommand = "demo";

inline bool is_prediction_command(std::string_view word) {
  return std::ranges::find(kPredictionCommands, word) != std::end(kPredictionCommands);
}

}  // namespace syncopate::experiments
