// What `run_experiment reproduce convergence` shows of its tables, as words. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/convergence/convergence_table.h"

namespace syncopate::experiments {

// A setting a row: what was published, what ours came to, and the verdict; the first row names the columns.
std::vector<std::vector<std::string>> convergence_rows(const ReproducedConvergence& reproduced);

// What was published, by whom, how ours differs, and what has no row: a sentence each.
std::vector<std::string> convergence_facts(const ConvergenceTable& table);

// Returns "9 of 12 settings reproduced, with all of 3 seeds."
std::string convergence_count(const ReproducedConvergence& reproduced);

// One table for a terminal.
std::string convergence_text(const ReproducedConvergence& reproduced);

// The command that runs a setting alone, with as many seeds.
std::string convergence_command(const ConvergenceSetting& setting, std::size_t seeds);

}  // namespace syncopate::experiments
