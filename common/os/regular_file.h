// Opens files that others have made, and refuses anything but a regular file: a pipe might never answer, and a device
// might never end. Messages begin with the path, in a printable form.
#pragma once

#include <cstdint>
#include <string>

#include "common/os/file_descriptor.h"
#include "common/status.h"

namespace syncopate {

enum class Links { kFollowed, kRefused };  // if the path's last component is a symbolic link

struct RegularFile {
  FileDescriptor descriptor;  // open for reading
  std::uint64_t bytes = 0;    // its size when it was opened
};

// Never waits. Fails with not found if the file does not exist, may not be read, or is not a regular file.
Result<RegularFile> open_regular_file(const std::string& path, Links links = Links::kFollowed);

// Reads all of it. Fails with data loss if it has more than `limit` bytes or ends before its size, and with resource
// exhausted if there is no memory.
Result<std::string> read_regular_file(const std::string& path, std::uint64_t limit, Links links = Links::kFollowed);

// The same for a file that a person names, which may also be a pipe that this process was started with: reads it to its
// end. A pipe with a name is refused: nobody may ever write to it.
Result<std::string> read_input(const std::string& path, std::uint64_t limit);

}  // namespace syncopate
