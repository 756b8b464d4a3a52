// The command `run_experiment evaluate MODEL [--predictions=FILE] [OPTIONS]`: evaluates weights that a run has left on
// a test set, as the run's evaluator does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/cluster/process/evaluation.h"
#include "experiments/config/options/given_options.h"

namespace syncopate::experiments {

// Returns what the command prints, and writes the file of --predictions. `words` are those behind the program's name,
// the first is the command. Fails with invalid argument for words that are wrong, for weights of which nobody says what
// they are of, and for weights of another model; else as open_saved_model(), read_weights() and open_dataset() do, and
// with resource exhausted if the file cannot be written.
Result<std::string> evaluate_answer(const std::vector<std::string>& words);

struct EvaluateRequest {
  std::string path;                        // what open_saved_model() takes
  GivenOptions options = {};               // of OptionSpec::of_model; they win over what is known of the weights
  std::optional<std::string> predictions;  // the file of predictions; none: they are not written
};

struct EvaluatedModel {
  std::string path;           // of the weights
  std::string model_on_data;  // "mlp on digits"
  std::int64_t samples = 0;
  Evaluation::Score score;
};

// Does the same, and returns the figures, bit by bit those of a final evaluation of these weights.
Result<EvaluatedModel> evaluate(const EvaluateRequest& request);

}  // namespace syncopate::experiments
