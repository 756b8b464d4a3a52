// Environment variables as an option has them: NAME=VALUE,... Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/launch/task_place.h"
#include "common/status.h"

namespace syncopate::experiments {

using VariableList = std::vector<std::pair<std::string, std::string>>;

// Reads "A=1,B=two words". In a value, a comma or a backslash has a backslash before it. Names begin with `prefix`.
// Fails with invalid argument, and what is wrong, for a name that no shell could set, one that is given twice, an entry
// without a value, and a control character.
Result<VariableList> parse_variables(std::string_view text, std::string_view prefix = "");
// Returns the text that parse_variables() reads.
std::string to_text(const VariableList& variables);

// Returns `text` with the values of `environment` behind names that have none: "A,B=2" becomes "A=1,B=2". Fails with
// invalid argument for a name that it does not have.
Result<std::string> with_values_of(const Variables& environment, std::string_view text);

// Sets `more` in `variables`, in place of what they have of the same names.
void set_variables(VariableList& variables, const VariableList& more);

}  // namespace syncopate::experiments
