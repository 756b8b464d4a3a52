// Writes important files atomically: a reader sees the old file or the new one, never a part of it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate {

// Writes to a temporary name in the same folder, fsync, rename, fsync of the folder. Replaces an existing file. Writers
// of the same path may race, in threads or processes: one of them wins completely. On failure (full disk, no
// permission, no such folder) nothing is left behind: kResourceExhausted with the path and the system's reason. The
// umask determines who may read the file.
Status write_whole_file(const std::string& path, std::span<const std::byte> content);
Status write_whole_file(const std::string& path, std::string_view content);

// Creates the folder and its parents, unless they exist. kResourceExhausted as above.
Status make_folder(const std::string& path);

}  // namespace syncopate
