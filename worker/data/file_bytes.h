// FileBytes: the content of one data file. A plain file is mapped read-only, so that the processes of a host share its
// pages; a .gz file is inflated into memory. Owns the memory of bytes(). Can be moved, but not copied.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"

namespace syncopate::worker {

class FileBytes {
 public:
  // Inflates the file if the name ends in ".gz". kNotFound: it does not exist, is not a regular file, or may not be
  // read. kDataLoss: a file of more than 4 TiB; a gzip stream that is corrupt, truncated, followed by more bytes, or
  // larger than 4 GiB. kResourceExhausted: no memory for the inflated content. A mapped file must not be truncated
  // while in use.
  static Result<FileBytes> open(const std::string& path);

  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&& other) noexcept;
  ~FileBytes();

  const std::string& path() const { return path_; }
  std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  FileBytes(std::string path, std::span<const std::uint8_t> mapping);
  FileBytes(std::string path, std::vector<std::uint8_t> inflated);

  std::string path_;
  std::vector<std::uint8_t> inflated_;
  std::span<const std::uint8_t> bytes_;  // the mapping, or inflated_
};

// Returns the first `count` bytes of the file's content, and reads no more than needed. kNotFound as above; kDataLoss
// if it has fewer.
Result<std::vector<std::uint8_t>> read_first_bytes(const std::string& path, std::size_t count);

}  // namespace syncopate::worker
