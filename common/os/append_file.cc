#include "common/os/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace syncopate {
namespace {

Status cannot_write(const std::string& path) {
  return Status::resource_exhausted(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
}

}  // namespace

Result<AppendFile> AppendFile::create(std::string path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) return cannot_write(path);
  return AppendFile(std::move(path), descriptor);
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      waiting_(std::move(other.waiting_)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(waiting_, other.waiting_);
  return *this;
}

AppendFile::~AppendFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status AppendFile::flush() {
  std::size_t written = 0;
  Status status;
  while (written < waiting_.size() && status.ok()) {
    const ssize_t count = ::write(descriptor_, waiting_.data() + written, waiting_.size() - written);
    if (count >= 0) {
      written += static_cast<std::size_t>(count);
    } else if (errno != EINTR) {
      status = cannot_write(path_);
    }
  }
  waiting_.erase(0, written);
  return status;
}

}  // namespace syncopate
