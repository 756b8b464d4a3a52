// An ordinary user: who runs the tests, or, where that is root, somebody without any rights.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace syncopate::testing_support {

// The user and the group called nobody.
inline constexpr uid_t kNobody = 65534;

// What stands in front of a command so that it runs as an ordinary user, whose home is `folder`, with this umask. The
// folder becomes theirs.
std::vector<std::string> as_ordinary_user(const std::filesystem::path& folder, const std::string& umask);

// Whether they can start the program; else why not.
std::string why_no_ordinary_user();

}  // namespace syncopate::testing_support
