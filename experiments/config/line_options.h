// The options that a line may have beside those of a run (option_table), of which some belong to single commands. With
// the table and submit's they are all that there are. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/config/option_words.h"
#include "experiments/config/options/option_table.h"

namespace syncopate::experiments {

// What --help without a topic means.
inline constexpr const char* kFirstPage = " ";

// Returns those that stand beside a run's, whatever is done with the run: --help, --config and so on.
std::vector<OptionSpec> options_beside_a_run();

// Returns those of commands other than submit, which has its own (submit_options).
std::vector<OptionSpec> options_of_commands();

// Returns all: the table, these, and submit's. A name may stand there twice.
std::vector<OptionSpec> all_options();

// Returns how a line has these options.
OptionForms forms_of(const std::vector<OptionSpec>& options);

// Returns how a line has the options of these names, which are among all_options().
OptionForms forms_named(std::span<const std::string> names);

}  // namespace syncopate::experiments
