// What a demonstration says of its figures, and whether a person's answers to its exercises are right. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "experiments/lab/demo/demo.h"
#include "experiments/lab/demo/formula.h"

namespace syncopate::experiments {

// Returns the sentences that hold for these figures, filled in. The first says which of the choices was right, if the
// question had any. Fails for a formula that cannot be evaluated.
Result<std::vector<std::string>> answer_of(const Demo& demo, const FigureLookup& figures);

// The text of an exercise, with its figures.
Result<std::string> exercise_text(const DemoExercise& exercise, const FigureLookup& figures);

struct CheckedAnswer {
  std::string key;
  bool is_right = false;
  std::string line;  // for the person: right, or what to think of
};

// Holds the answers of a file (TOML, a line for each exercise's key) against those that the figures have. Numbers are
// right within the exercise's tolerance, texts in any case of letters. Fails with invalid argument for a file that is
// none or has a key that no exercise has; a missing one and one of a wrong kind are wrong answers that say so. Fails
// too for a run that lacks the figure.
Result<std::vector<CheckedAnswer>> check_answers(const Demo& demo, const FigureLookup& figures, std::string_view toml);

}  // namespace syncopate::experiments
