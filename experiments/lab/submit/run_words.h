// The options of a run as words of a command line. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/config/options/given_options.h"

namespace syncopate::experiments {

// Returns "--mode=ps", "--elastic" and so on: the options in the order of the table, without the program of a person's
// own.
std::vector<std::string> run_words(const GivenOptions& given);

}  // namespace syncopate::experiments
