// What --help shows: a first page, a page for each topic, one for each option, or all. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate::experiments {

// `topic` is "" (what the program does, how to begin, and what topics there are), a topic ("ps", "training",
// "compare"), the name of an option with or without dashes ("straggler"), or "all". No line is longer than `columns`,
// but for words that are, and examples; below 40 it is taken as 40. Fails with invalid argument, saying what would be
// right, for a topic that there is none of.
Result<std::string> help_text(std::string_view topic, int columns);

}  // namespace syncopate::experiments
