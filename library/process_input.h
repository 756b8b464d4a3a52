// The standard input of a process that a rank has started: a pipe, or a socket.
#pragma once

#include <string_view>

namespace syncopate::library {

// Writes all of `text`, which is short. Returns whether it could: not if the process has ended. A socket says so
// without SIGPIPE; a pipe raises it, which only Python ignores.
bool write_to_process(int file, std::string_view text);

}  // namespace syncopate::library
