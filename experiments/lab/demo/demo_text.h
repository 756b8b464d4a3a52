// What a person reads of demonstrations. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/lab/demo/demo.h"

namespace syncopate::experiments {

// The list that `run_experiment demo` prints.
std::string demo_list(const std::vector<Demo>& demos, int columns);

// A choice of the question, as it stands below it: "a: not at all".
std::string choice_text(const DemoChoice& choice);

// Where to look in the plots.
std::string look_text(const Demo& demo);

// What is asked before anything runs, and what will run.
std::string question_text(const Demo& demo, int columns);

// The answer's sentences and the exercises, below the plots.
std::string answer_text(const Demo& demo, const std::vector<std::string>& sentences,
                        const std::vector<std::string>& exercises, int columns);

}  // namespace syncopate::experiments
