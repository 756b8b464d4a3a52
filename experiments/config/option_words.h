// The words of a command line: which are options, which are their values, and which are neither. `--name VALUE` is
// `--name=VALUE`, in every command. Pure.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

struct OptionForm {
  std::string placeholder = "VALUE";  // what to type for its value, as in the help; empty: it is a switch
  std::string bare = {};              // what it means without a value; empty: it needs one
};

using OptionForms = std::map<std::string, OptionForm>;  // by names without dashes

struct OptionWords {
  std::map<std::string, std::vector<std::string>> values;  // of each option, in their order; "true" of a bare switch
  std::vector<std::string> unknown;                        // what looks like an option and is none of the forms
  std::vector<std::string> operands;                       // everything else

  // Returns the option's value; fails with invalid argument if it was given several times. Requires that it was given.
  Result<std::string> one(const std::string& name) const;
};

// A word that begins with a dash is an option, unless it is a number. Fails with invalid argument, with what to type,
// where an option lacks its value.
Result<OptionWords> option_words(std::span<const std::string> words, const OptionForms& forms);

}  // namespace syncopate::experiments
