// Finds the commit of a source tree from the files of git, without running git.
#pragma once

#include <filesystem>
#include <string>

namespace syncopate::experiments {

// Returns the commit of the work tree that contains `inside`, as hexadecimal digits; empty if there is none, or none
// yet. Supports linked work trees (a .git file), and loose and packed references.
std::string git_commit_of(const std::filesystem::path& inside);

}  // namespace syncopate::experiments
