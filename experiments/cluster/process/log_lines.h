// What a process logs, one line a message.
#pragma once

#include <spdlog/formatter.h>

#include <memory>
#include <string>

namespace syncopate::experiments {

// Formats as spdlog does by `pattern`, in which %v, the message, is made printable (common/text/printable_text.h): what
// somebody else has said can neither drive a terminal nor begin a line that looks like another message.
std::unique_ptr<spdlog::formatter> printable_log_lines(std::string pattern);

}  // namespace syncopate::experiments
