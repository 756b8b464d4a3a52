// Makes text of any origin safe for a terminal or a log. Pure.
#pragma once

#include <string>
#include <string_view>

namespace syncopate {

// Returns `text`, of one line or several, with each line made printable (common/text/printable_text.h).
std::string printable_lines(std::string_view text);

}  // namespace syncopate
