#include "library/installed_server.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace syncopate::library {

std::string installed_server() {
  Dl_info found{};
  dladdr(reinterpret_cast<const void*>(&installed_server), &found);
  const std::filesystem::path file = found.dli_fname != nullptr ? found.dli_fname : "/proc/self/exe";
  std::error_code ignored;  // a path that is not there is said so by who starts it
  return std::filesystem::weakly_canonical(file.parent_path() / SYNCOPATE_SERVER_PATH, ignored).string();
}

}  // namespace syncopate::library
