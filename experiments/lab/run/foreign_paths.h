// Which of the files and folders that a command names belong to another user, who can read and change what is there.
#pragma once

#include <string>
#include <vector>

namespace syncopate::experiments {

// Returns a line for each word of the command that names one, itself or as the value of an option, up to "--". What
// belongs to root is not said: root reads and changes everything.
std::vector<std::string> foreign_paths(const std::vector<std::string>& words);

}  // namespace syncopate::experiments
