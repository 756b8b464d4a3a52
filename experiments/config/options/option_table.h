// The table of all options: the only place that defines the outside name, the range and the purpose of each field of
// RunConfig. The command line, --help, the config file and the record of a run are all made from it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/config/run_config.h"

namespace syncopate::experiments {

struct OptionSpec {
  std::string group = {};        // its heading in the help: "Parameter servers"
  std::string name = {};         // "servers": --servers=… on the command line, servers = … in a file
  std::string placeholder = {};  // "N"; empty for a switch, whose value is "true" unless it is "on" or "off"
  std::string sentence = {};     // its purpose
  std::string unit = {};         // "processes"; empty if it has none
  std::string range = {};        // "1 to 64", "sync, bounded:k or async"
  std::string usual = {};        // the default, as shown to people
  bool is_text = false;          // its value is quoted in a file
  bool in_file = true;           // it is allowed in a config file
  bool is_list = false;          // several uses of it mean the same as one with commas between the values
  std::string only_with = {};    // when it has an effect, as in "--mode=ps"; empty: always
  std::string excludes = {};     // an option that may not be given together with it

  // Checks one value and sets it in the config. The error message names the option, the value and the range.
  std::function<Status(RunConfig&, const std::string& text)> set = {};
  // Returns the value in the form that set() reads, or an empty text if it is not given, so that a record omits it.
  std::function<std::string(const RunConfig&)> get = {};
  // Returns whether the option has an effect under this config; null: it always has.
  std::function<bool(const RunConfig&)> applies = {};

  bool has_effect(const RunConfig& config) const { return !applies || applies(config); }
};

// Returns the options in the order in which people read them. Each call builds the table anew.
std::vector<OptionSpec> option_table();

}  // namespace syncopate::experiments
