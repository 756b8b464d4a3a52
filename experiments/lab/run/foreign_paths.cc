#include "experiments/lab/run/foreign_paths.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "common/text/printable_text.h"

namespace syncopate::experiments {
namespace {

std::string user_name(uid_t user) {
  const passwd* const entry = ::getpwuid(user);
  return entry != nullptr ? printable(entry->pw_name) : fmt::format("user {}", user);
}

}  // namespace

std::vector<std::string> foreign_paths(const std::vector<std::string>& words) {
  std::vector<std::string> lines;
  for (auto word = words.begin(); word != words.end() && *word != "--"; ++word) {
    const std::string path =
        word->starts_with("--") ? word->substr(std::min(word->find('='), word->size() - 1) + 1) : *word;
    struct stat found {};
    if (path.empty() || ::stat(path.c_str(), &found) != 0) continue;
    if (!S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode)) continue;
    if (found.st_uid == ::geteuid() || found.st_uid == 0) continue;
    lines.push_back(fmt::format("warning: {}: belongs to {}, who can read and change what is there", printable(*word),
                                user_name(found.st_uid)));
  }
  return lines;
}

}  // namespace syncopate::experiments
