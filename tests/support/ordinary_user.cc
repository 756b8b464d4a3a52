#include "tests/support/ordinary_user.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/build_paths.h"

namespace syncopate::testing_support {

std::vector<std::string> as_ordinary_user(const std::filesystem::path& folder, const std::string& umask) {
  std::vector<std::string> words{"/usr/bin/env", "HOME=" + folder.string(),
                                 "XDG_CACHE_HOME=" + (folder / "cache").string()};
  if (geteuid() == 0) {
    if (chown(folder.c_str(), kNobody, kNobody) != 0) return {"/bin/false"};
    const std::string id = std::to_string(kNobody);
    words.insert(words.end(), {"setpriv", "--reuid=" + id, "--regid=" + id, "--clear-groups"});
  }
  words.insert(words.end(), {"sh", "-c", "umask " + umask + "; exec \"$@\"", "sh"});
  return words;
}

std::string why_no_ordinary_user() {
  if (geteuid() != 0) return {};
  for (std::filesystem::path path = syncopate_program(); path != path.root_path(); path = path.parent_path()) {
    struct stat found {};
    if (stat(path.c_str(), &found) != 0 || (found.st_mode & S_IXOTH) == 0) {
      return "no user but root can reach " + path.string();
    }
  }
  return {};
}

}  // namespace syncopate::testing_support
