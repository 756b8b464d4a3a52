#include "experiments/lab/run/scratch_folder.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace syncopate::experiments {

Result<ScratchFolder> ScratchFolder::make() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string path = (parent / "syncopate-XXXXXX").string();
  if (!error && mkdtemp(path.data()) != nullptr) return ScratchFolder(path);
  return Status::resource_exhausted(fmt::format("{}: no folder for results that nobody keeps can be made ({})", path,
                                                error ? error.message() : std::strerror(errno)));
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

}  // namespace syncopate::experiments
