// Text for a terminal or a log, whoever it comes from. Pure.
#pragma once

#include <string>
#include <string_view>

namespace syncopate {

// `text` of one line or several, each made printable (common/text/printable_text.h).
std::string printable_lines(std::string_view text);

}  // namespace syncopate
