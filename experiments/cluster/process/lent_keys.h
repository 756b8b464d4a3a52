// How a run's keys reach processes whose standard input is not ours to write: one that has them lends them out, through
// a file that has no name and is in memory alone. Where it lies stands in the environment; nobody but its user can open
// it there, and it is gone with the process that lends it.
#pragma once

#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/status.h"
#include "common/transport/secret_text.h"

namespace syncopate::experiments {

// Where the keys are lent: "/proc/4711/fd/5".
inline constexpr const char* kLentKeys = "SYNCOPATE_LENT_KEYS";

// A file that holds `line` and its end; it can be read as long as this process has it open. One that is `inherited`
// stays open in a program that takes this one's place.
Result<FileDescriptor> lend(std::string_view line, bool inherited = false);
// Under which path others read it.
std::string path_of(const FileDescriptor& lent);

// The line that is lent to this process, and the one that stands on its standard input; without line breaks.
Result<SecretText> lent_line();
Result<SecretText> line_on_stdin(TimePoint deadline);

}  // namespace syncopate::experiments
