// How often weights are evaluated on the test set while they are trained.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate::experiments {

// One of the three is above 0.
struct EvaluationInterval {
  std::int64_t steps = 0;  // of the job: one is a step of all workers
  double seconds = 0;      // since training began
  double epochs = 0;

  // As a checkpoint interval is written, "200" steps or "2s" seconds; or "0.5epochs", "1epoch". Invalid argument for
  // anything else.
  static Result<EvaluationInterval> parse(std::string_view text);
  static const char* forms();
  // As parse reads it.
  std::string to_string() const;

  bool operator==(const EvaluationInterval&) const = default;
};

}  // namespace syncopate::experiments
