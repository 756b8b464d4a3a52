// EvaluationRecord: which weights of a run were evaluated, how often, and how often not. For its record, and for a
// person.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/config/run_config.h"

namespace syncopate::experiments {

struct EvaluationRecord {
  std::string every;           // "every epoch", "every 50 steps"
  std::string weights;         // evaluated_weights()
  std::int64_t points = 0;     // that the run came to; the final weights are none
  std::int64_t evaluated = 0;  // of them
  bool final_evaluated = true;
  bool lost_evaluator = false;  // for good
};

// Whose weights are evaluated while they are trained. `config` has been through resolve().
std::string evaluated_weights(const RunConfig& config);

// What was not evaluated, and why; empty for nothing: "9 of 40 points: the evaluator was
// lost".
std::string not_evaluated_text(const EvaluationRecord& record);
// "at 31 of 40 points, every 50 steps: the center that workers meet at"
std::string to_text(const EvaluationRecord& record);

}  // namespace syncopate::experiments
