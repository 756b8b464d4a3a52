// EvaluationRecord: which weights of a run were evaluated, at how many points, and how many were missed. It is for the
// record of the run and for a person.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

struct EvaluationRecord {
  std::string every;           // "every epoch", "every 50 steps"
  std::string weights;         // what evaluated_weights() returned
  std::int64_t points = 0;     // points that the run reached, without the final weights
  std::int64_t evaluated = 0;  // points that were evaluated
  bool final_evaluated = true;
  bool lost_evaluator = false;  // permanently
  bool is_cut_short = false;    // the run has failed, and has no final weights
};

// Returns whose weights are evaluated during training.
std::string evaluated_weights(const ResolvedRun& config);

// Returns what was not evaluated, and why: "9 of 40 points: the evaluator was lost, or not done in time". Empty if
// nothing was missed.
std::string not_evaluated_text(const EvaluationRecord& record);
// Returns, for example, "31 of 40 points, every 50 steps, and at the end: the worker's".
std::string to_text(const EvaluationRecord& record);

}  // namespace syncopate::experiments
