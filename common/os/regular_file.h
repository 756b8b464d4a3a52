// Files that others have made, opened so that nothing but a file can be behind the name: no pipe that would never
// answer, no device that never ends. Messages begin with the path, in a form that can be shown.
#pragma once

#include <cstdint>
#include <string>

#include "common/os/file_descriptor.h"
#include "common/status.h"

namespace syncopate {

enum class Links { kFollowed, kRefused };  // where the path's last name is a symbolic link

struct RegularFile {
  FileDescriptor descriptor;  // to read
  std::uint64_t bytes = 0;    // that it had when it was opened
};

// Never waits. Not found where it is not there, may not be read, or is anything but a regular file.
Result<RegularFile> open_regular_file(const std::string& path, Links links = Links::kFollowed);

// All of it. Data loss where it has more than `limit` bytes or ends before its size, resource exhausted where memory
// ends.
Result<std::string> read_regular_file(const std::string& path, std::uint64_t limit, Links links = Links::kFollowed);

// The same of what a person names, which may be a pipe: what comes out of it, up to its end.
Result<std::string> read_input(const std::string& path, std::uint64_t limit);

}  // namespace syncopate
