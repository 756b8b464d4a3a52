#include "common/os/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "common/os/resource_limits.h"

namespace syncopate {
namespace {

Status cannot_write(const std::string& path, int error) {
  return Status::resource_exhausted(
      fmt::format("{}: cannot be written: {}", path, std::generic_category().message(error)));
}

constexpr int kNamesToTry = 100;

// A name beside `path` that nobody else is likely to think of.
std::string name_beside(const std::string& path) {
  std::uint64_t random = 0;
  return ::getrandom(&random, sizeof(random), 0) == sizeof(random) ? fmt::format("{}.tmp-{:016x}", path, random)
                                                                   : std::string();
}

// A file under a name of its own, removed again unless renamed. Who may read it is for the umask to say, which
// mkstemp(3) does not ask.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& for_path) {
    for (int tries = 0; tries < kNamesToTry && descriptor_ < 0; ++tries) {
      name_ = name_beside(for_path);
      descriptor_ = ::open(name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor_ < 0 && errno != EEXIST) break;
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    if (!renamed_) ::unlink(name_.c_str());
  }

  bool open() const { return descriptor_ >= 0; }

  // False with errno set, as everything below.
  bool write(std::span<const std::byte> content) {
    while (!content.empty()) {
      const ssize_t written = ::write(descriptor_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      content = content.subspan(static_cast<std::size_t>(written));
    }
    return true;
  }

  bool publish_as(const std::string& path) {
    if (::fsync(descriptor_) != 0) return false;
    renamed_ = std::rename(name_.c_str(), path.c_str()) == 0;
    return renamed_;
  }

 private:
  std::string name_;
  int descriptor_ = -1;
  bool renamed_ = false;
};

// Without this the rename itself may be lost with the power.
bool sync_folder_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const int descriptor = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool synced = ::fsync(descriptor) == 0 || errno == EINVAL;  // EINVAL: a file system that has no such notion
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return synced;
}

}  // namespace

namespace {

// An errno; 0: it is written.
int try_to_write(const std::string& path, std::span<const std::byte> content) {
  TemporaryFile file(path);
  const bool written = file.open() && file.write(content) && file.publish_as(path) && sync_folder_of(path);
  return written ? 0 : errno;
}

}  // namespace

Status write_whole_file(const std::string& path, std::span<const std::byte> content) {
  int error = try_to_write(path, content);
  // Intruders who hold all connections that there can be must not cost a result.
  if (error == EMFILE) (void)with_own_descriptors([&] { error = try_to_write(path, content); });
  return error == 0 ? Status() : cannot_write(path, error);
}

Status write_whole_file(const std::string& path, std::string_view content) {
  return write_whole_file(path, std::as_bytes(std::span(content)));
}

Status make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? cannot_write(path, error.value()) : Status();
}

}  // namespace syncopate
