// The table of all options: the only place that defines the outside name, the range and the purpose of each field of
// RunSettings and RunRequest. The command line, --help, the config file and the record of a run are all made from it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/resolved_run.h"
#include "experiments/config/run_request.h"

namespace syncopate::experiments {

// When an option has an effect: the words for people, and the rule. All stand in conditions.h.
struct Condition {
  std::string words;  // "--mode=ps"; empty where the option's `excludes` says it
  bool (*holds)(const ResolvedRun& run);
};

struct OptionSpec {
  std::string group = {};              // its heading in the help: "Parameter servers"
  std::string name = {};               // "servers": --servers=… on the command line, servers = … in a file
  bool of_model = false;               // it says what a model is, or what it is evaluated on
  bool of_mode = false;                // it says which mode runs, or how: a comparison names that in --modes
  bool names_hosts = false;            // it says which hosts there are, or how they are reached
  std::string placeholder = {};        // "N"; empty for a switch, whose value is "true" unless it is "on" or "off"
  std::string sentence = {};           // its purpose
  std::string unit = {};               // "processes"; empty if it has none
  std::string range = {};              // "1 to 64", "sync, bounded:k or async"
  std::string usual = {};              // the default, as shown to people
  std::string bare = {};               // what it means if it is given without a value; empty: it needs one
  bool is_text = false;                // its value is quoted in a file
  bool in_file = true;                 // it is allowed in a config file
  bool is_list = false;                // several uses of it mean the same as one with commas between the values
  bool with_command = false;           // it has an effect on a program of the person's own
  std::string variable = {};           // that tells such a program of it; empty: run_experiment alone acts on it
  std::string excludes = {};           // an option that may not be given together with it
  std::optional<Condition> only = {};  // when it has an effect; none: always

  // Checks one value and sets it in the request. The error message names the option, the value and the range.
  std::function<Status(RunRequest&, const std::string& text)> set = {};
  // Returns the value in the form that set() reads, or an empty text if the run has none, so that a record omits it.
  std::function<std::string(const ResolvedRun&)> get = {};

  bool has_effect(const ResolvedRun& run) const {
    return (!only || only->holds(run)) && (with_command || !runs_command(run));
  }
  // Returns in words when it has an effect; empty: always, or as `excludes` says.
  std::string only_with() const { return only ? only->words : std::string(); }
};

// Returns the options in the order in which people read them. Each call builds the table anew.
std::vector<OptionSpec> option_table();

}  // namespace syncopate::experiments
