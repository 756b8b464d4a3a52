// Which commit a source tree stands at, read from the files that git keeps, without running git.
#pragma once

#include <filesystem>
#include <string>

namespace syncopate::experiments {

// The commit of the work tree that `inside` lies in, as hexadecimal digits; empty where there is none, or none yet.
// Knows work trees of their own (a .git file), loose and packed references.
std::string git_commit_of(const std::filesystem::path& inside);

}  // namespace syncopate::experiments
