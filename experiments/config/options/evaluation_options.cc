#include "experiments/config/evaluation_points.h"
#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"

namespace syncopate::experiments {
namespace {

using option_kinds::flag;
using option_kinds::number;
using option_kinds::only;

using C = RunRequest;

constexpr const char* kTrainingGroup = "Training";

OptionSpec evaluate_every() {
  OptionSpec option{.group = kTrainingGroup,
                    .name = "evaluate-every",
                    .placeholder = "INTERVAL",
                    .sentence =
                        "Evaluates the weights on the test set while they are trained: 100 every 100 steps of "
                        "all workers, 2s every 2 seconds, 0.5epochs twice an epoch. The final weights are "
                        "evaluated always.",
                    .range = EvaluationInterval::forms(),
                    .usual = fmt::format("1epoch; with --target-accuracy equal parts of one, {} in a run at least",
                                         EvaluationPoints::kLeastForATarget),
                    .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    const Result<EvaluationInterval> parsed = EvaluationInterval::parse(value);
    if (!parsed.ok()) return option_kinds::wrong(option, value, "interval");
    request.evaluate_every = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& config) {
    return config.evaluate_every ? config.evaluate_every->to_string() : std::string();
  };
  return option;
}

}  // namespace

void add_evaluation_options(std::vector<OptionSpec>& table) {
  table.push_back(only(evaluate_every(), conditions::kLearns));
  table.push_back(
      number({.group = kTrainingGroup,
              .name = "target-accuracy",
              .placeholder = "X",
              .sentence = "Test accuracy whose first reach is reported, of ratings HR@10, of clicks the AUC, with "
                          "--validation the accuracy on what is held out; 0 asks for none. Training goes on beyond it.",
              .unit = "fraction"},
             &C::target_accuracy, "target accuracy", 0.0, 1.0));
  table.push_back(only(flag({.group = kTrainingGroup,
                             .name = "stop-at-target",
                             .sentence = "Ends training with the epoch in which an evaluation has come to the target."},
                            &C::stop_at_target),
                       conditions::kTarget));
}

}  // namespace syncopate::experiments
