// The format of a process's log, one line per message.
#pragma once

#include <spdlog/formatter.h>

#include <memory>
#include <string>

namespace syncopate::experiments {

// Formats as spdlog does by `pattern`, in which %v, the message, is made printable (common/text/printable_text.h): text
// from others can neither control a terminal nor begin a line that looks like another message.
std::unique_ptr<spdlog::formatter> printable_log_lines(std::string pattern);

}  // namespace syncopate::experiments
