// Which words of a command line are options, and which are their values. Pure.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

// An option that takes a value.
struct ValueForm {
  std::string placeholder = "VALUE";  // what to type, as in the help
  std::string bare = {};              // what the option means without a value; empty: it needs one
};

// Returns `words` with each value in the word of its option: {"--output=DIR"} of {"--output", "DIR"}. `forms` are those
// of the options that take a value, by their names without dashes. A word that begins with a dash is an option, unless
// it is a number. Fails with invalid argument, with what to type, where an option lacks its value.
Result<std::vector<std::string>> with_values_joined(std::span<const std::string> words,
                                                    const std::map<std::string, ValueForm>& forms);

}  // namespace syncopate::experiments
