// SpaceReserve: space on the disk of a folder that is kept for what must be written last, however full the disk is by
// then.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "common/os/file_descriptor.h"
#include "common/status.h"

namespace syncopate::experiments {

class SpaceReserve {
 public:
  // Takes `bytes` in `folder`, in a file that no longer has a name: nothing is left of it whenever this process ends.
  // Fails with resource exhausted, with the folder and the system's reason, if there is not that much.
  static Result<SpaceReserve> take(const std::string& folder, std::size_t bytes);

  // Gives it back to the disk.
  void release() { file_ = FileDescriptor(); }

 private:
  explicit SpaceReserve(FileDescriptor file) : file_(std::move(file)) {}

  FileDescriptor file_;
};

}  // namespace syncopate::experiments
