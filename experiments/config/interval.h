// The intervals at which a run writes checkpoints and evaluates its weights, as they are typed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate::experiments {

// CheckpointInterval: how often a run writes checkpoints, by steps or by seconds.
struct CheckpointInterval {
  std::int64_t steps = 0;  // 0: the interval is in seconds
  double seconds = 0;

  // Reads "200" as steps, and "30s" or "0.5s" as seconds. Fails with invalid argument for anything else.
  static Result<CheckpointInterval> parse(std::string_view text);
  static const char* forms();
  // Returns the text that parse() reads.
  std::string to_string() const;

  bool operator==(const CheckpointInterval&) const = default;
};

// EvaluationInterval: how often the weights are evaluated on the test set during training. Exactly one of the three is
// above 0.
struct EvaluationInterval {
  std::int64_t steps = 0;  // steps of the job; each is a step of all workers
  double seconds = 0;      // since training began
  double epochs = 0;

  // Reads "200" as steps, "2s" as seconds, and "0.5epochs" or "1epoch" as epochs. Fails with invalid argument for
  // anything else.
  static Result<EvaluationInterval> parse(std::string_view text);
  static const char* forms();
  // Returns the text that parse() reads.
  std::string to_string() const;

  bool operator==(const EvaluationInterval&) const = default;
};

}  // namespace syncopate::experiments
