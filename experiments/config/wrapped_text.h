// Text in lines for a terminal. Pure.
#pragma once

#include <string>

namespace syncopate::experiments {

// Returns `text` in lines of at most `columns`, each indented by `indent` spaces. Words are never divided.
std::string wrapped(const std::string& text, int indent, int columns);

}  // namespace syncopate::experiments
