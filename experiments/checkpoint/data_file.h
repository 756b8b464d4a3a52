// DataFile: a file of a checkpoint, read and written at any offset. Failures name the path and the system's reason.
// They are resource exhausted if it cannot be written, and data loss if it does not exist, is not a regular file of the
// folder (a symbolic link, a pipe), or ends too early.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/os/file_descriptor.h"
#include "common/status.h"

namespace syncopate::experiments {

class DataFile {
 public:
  // Creates the file if it does not exist, and gives it a length of `bytes` bytes, which are zero until they are
  // written. Several processes may do so.
  static Result<DataFile> make(std::string path, std::uint64_t bytes);
  static Result<DataFile> open(std::string path);

  Status write(std::span<const std::byte> bytes, std::uint64_t offset);
  Status read(std::span<std::byte> bytes, std::uint64_t offset) const;
  // Makes sure that what has been written is on the disk.
  Status sync();
  std::uint64_t bytes() const { return bytes_; }  // its length when it was opened
  const std::string& path() const { return path_; }

 private:
  DataFile(std::string path, FileDescriptor descriptor, std::uint64_t bytes)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), bytes_(bytes) {}

  std::string path_;
  FileDescriptor descriptor_;
  std::uint64_t bytes_ = 0;
};

// Makes sure that files added to or removed from a folder are so on the disk.
Status sync_folder(const std::string& path);
// Fails with resource exhausted unless the disk of this folder has space for `bytes`, and a reserve for what the run
// must still write.
Status check_room(const std::string& folder, std::uint64_t bytes);

}  // namespace syncopate::experiments
