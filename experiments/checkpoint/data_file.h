// A file of a checkpoint, read and written at any place. Failures name the path and the system's reason: resource
// exhausted where it cannot be written, data loss where it is not there, is no regular file of the folder's own (a
// symbolic link, a pipe), or ends too early.
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
  // Makes it unless it is there, and gives it `bytes` bytes, zeros where nothing is written: several processes may do
  // so.
  static Result<DataFile> make(std::string path, std::uint64_t bytes);
  static Result<DataFile> open(std::string path);

  Status write(std::span<const std::byte> bytes, std::uint64_t offset);
  Status read(std::span<std::byte> bytes, std::uint64_t offset) const;
  // What has been written is on the disk.
  Status sync();
  std::uint64_t bytes() const { return bytes_; }  // that it had when it was opened
  const std::string& path() const { return path_; }

 private:
  DataFile(std::string path, FileDescriptor descriptor, std::uint64_t bytes)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), bytes_(bytes) {}

  std::string path_;
  FileDescriptor descriptor_;
  std::uint64_t bytes_ = 0;
};

// What is new in a folder, or has gone from it, is so on the disk.
Status sync_folder(const std::string& path);
// Fails with resource exhausted unless the disk of this folder has room for `bytes`, and a reserve beside them for what
// a run must go on to write.
Status check_room(const std::string& folder, std::uint64_t bytes);

}  // namespace syncopate::experiments
