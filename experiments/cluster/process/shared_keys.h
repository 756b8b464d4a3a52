// How a run's keys reach processes whose standard input we cannot write: a process that has the keys shares them
// through an unnamed file in memory. The environment says where it is. Only the same user can open it there, and it
// disappears with the process that shares it.
#pragma once

#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/status.h"
#include "common/transport/secret_text.h"

namespace syncopate::experiments {

// Where the keys are: "/proc/4711/fd/5".
inline constexpr const char* kSharedKeys = "SYNCOPATE_LENT_KEYS";

// Returns a file that holds `line` and its line break. Others can read it as long as this process has it open. If
// `inherited`, it stays open in a program that replaces this one.
Result<FileDescriptor> lend(std::string_view line, bool inherited = false);
// Returns the path by which others read it.
std::string path_of(const FileDescriptor& shared);

// Return the line that is shared with this process, and the line on its standard input; without line breaks.
Result<SecretText> shared_line();
Result<SecretText> line_on_stdin(TimePoint deadline);

}  // namespace syncopate::experiments
