// The commands of the program, a row each: what the first word may be, and what stands behind it. Parsing, help,
// completion and docs/commands.md follow from the rows. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/config/options/option_table.h"

namespace syncopate::experiments {

struct Command {
  std::string name;
  std::string operands;              // what stands behind it beside options, as in "FOLDER..."; empty: nothing does
  std::string sentence;              // what it does
  std::string topic;                 // of its help
  std::vector<std::string> options;  // that it takes, by their names; beside those of a run where it has one
  bool has_run = false;              // it takes the options of a run, too, and may stand behind options
};

// Returns the commands in the order in which people need them.
const std::vector<Command>& commands();

// Returns the command of this name; null if there is none.
const Command* command_named(std::string_view name);

}  // namespace syncopate::experiments
