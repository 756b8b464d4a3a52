// The table of all options: the one place that knows what a knob of RunConfig is called outside, what it may be, and
// what it is for. The command line, --help, the config file and the record of a run are all read off it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/config/run_config.h"

namespace syncopate::experiments {

struct OptionSpec {
  std::string group = {};        // the heading it stands under, as in "Parameter servers"
  std::string name = {};         // "servers": --servers=… on the command line, servers = … in a file
  std::string placeholder = {};  // "N"; empty for a switch, whose value is "true" unless it can say how
  std::string sentence = {};     // what it is for
  std::string unit = {};         // "processes"; empty for what has none
  std::string range = {};        // "1 to 64", "sync, bounded:k or async"
  std::string usual = {};        // the default, as people read it
  bool is_text = false;          // quoted in a file
  bool in_file = true;           // may stand in a config file
  bool is_list = false;          // given several times, it is as if all stood in one, between commas
  std::string only_with = {};    // when it has an effect, as in "--mode=ps"; empty: always
  std::string excludes = {};     // the option that may not be given beside it

  // Checks one value and puts it in. The message names option, value and range.
  std::function<Status(RunConfig&, const std::string& text)> set = {};
  // The value as set() reads it; empty where it is not given, so that a record does not show it.
  std::function<std::string(const RunConfig&)> get = {};
  // Whether it has an effect under this config; null: always.
  std::function<bool(const RunConfig&)> applies = {};

  bool has_effect(const RunConfig& config) const { return !applies || applies(config); }
};

// In the order in which people read them. Built anew by each call.
std::vector<OptionSpec> option_table();

}  // namespace syncopate::experiments
