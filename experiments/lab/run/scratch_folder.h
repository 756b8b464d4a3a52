// ScratchFolder: where runs leave results that nobody keeps; removed with its contents.
#pragma once

#include <string>
#include <utility>

#include "common/status.h"

namespace syncopate::experiments {

class ScratchFolder {
 public:
  // Below the system's folder for temporary files ($TMPDIR). Fails with resource exhausted if none can be made.
  static Result<ScratchFolder> make();
  ~ScratchFolder();
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: moved away
};

}  // namespace syncopate::experiments
