// The text of --help: a first page, a page for each topic, a page for each option, or everything. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate::experiments {

// Returns the help text of `topic`, which is "" (what the program does, how to begin, and which topics exist), a topic
// ("ps", "training", "compare"), the name of an option with or without dashes ("straggler"), or "all". Lines are no
// longer than `columns` (at least 40), except for examples and single words that are longer. Fails with invalid
// argument for an unknown topic, saying what would be right.
Result<std::string> help_text(std::string_view topic, int columns);

}  // namespace syncopate::experiments
