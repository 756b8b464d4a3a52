// The intervals at which a run writes checkpoints and evaluates its weights, as they are typed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate::experiments {

// CheckpointInterval: how often a run writes checkpoints. Exactly one of the three is above 0.
struct CheckpointInterval {
  std::int64_t steps = 0;
  double seconds = 0;
  double epochs = 0;

  // Returns the same with its epochs as steps: the nearest multiple of `period` steps above 0.
  CheckpointInterval in_steps(std::int64_t steps_per_epoch, std::int64_t period) const;

  // Reads "200" as steps, "30s" or "0.5s" as seconds, and "0.5epochs" or "1epoch" as epochs. Fails with invalid
  // argument for anything else.
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
