// Files that matter are written whole: a reader sees the old file, or the new one, and never a part of it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate {

// Writes to a temporary name in the same folder, fsync, rename, fsync of the folder. Replaces a file that is there.
// Writers of the same path may race, in threads or processes: one of them wins, whole. On failure (full disk, no
// permission, no such folder) nothing is left behind: kResourceExhausted with the path and the system's reason. The
// umask says who may read the file.
Status write_whole_file(const std::string& path, std::span<const std::byte> content);
Status write_whole_file(const std::string& path, std::string_view content);

// Makes the folder and those above it, unless they are there. kResourceExhausted as above.
Status make_folder(const std::string& path);

}  // namespace syncopate
