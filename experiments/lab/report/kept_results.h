// What stays in the folder of a run's results when --resume=auto goes on in it (experiments/lab/run/auto_resume.h).
// Pure.
#pragma once

#include <string_view>

#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

inline constexpr std::string_view kResumeAuto = "auto";

// Whether the run goes on in the folder of its own results.
inline bool resumes_here(const ResolvedRun& config) { return config.resume == kResumeAuto; }

inline constexpr std::string_view kCheckpointsFolder = "checkpoints";
inline constexpr std::string_view kBeforeFolder = "before-";  // and a number: what parts of the run before have left

// Whether a file or folder of that name stays.
inline bool stays_for_resume(std::string_view name) {
  return name == kCheckpointsFolder || name.starts_with(kBeforeFolder);
}

}  // namespace syncopate::experiments
