// Text in lines for a terminal. Pure.
#pragma once

#include <string>

namespace syncopate::experiments {

// Returns `text` in lines of at most `columns`, each indented by `indent` spaces. Words are never divided.
std::string wrapped(const std::string& text, int indent, int columns);

// Returns lines of which prose is wrapped to `columns`, below its own indentation. Lines with two blanks next to each
// other are those of tables and stay as they are; so does everything if `columns` is zero.
std::string wrapped_prose(const std::string& lines, int columns);

}  // namespace syncopate::experiments
