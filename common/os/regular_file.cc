#include "common/os/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

#include "common/os/resource_limits.h"
#include "common/text/printable_text.h"

namespace syncopate {
namespace {

constexpr std::size_t kLongestPath = 4096;

Status failed(Code code, const std::string& path, const std::string& what) {
  return {code, fmt::format("{}: {}", printable(path, kLongestPath), what)};
}

Status cannot_read(const std::string& path, int error) {
  const bool is_exhausted = error == ENOMEM || error == EMFILE || error == ENFILE;
  return failed(is_exhausted ? Code::kResourceExhausted : Code::kNotFound, path,
                "cannot be read: " + std::generic_category().message(error) + limit_behind(error));
}

const char* name_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISLNK(mode) ? "a symbolic link" : "a device";
}

Status not_a_file(const std::string& path, const char* what) {
  return failed(Code::kNotFound, path, fmt::format("is not a regular file, but {}", what));
}

Status too_large(const std::string& path, std::uint64_t limit) {
  return failed(Code::kDataLoss, path, fmt::format("is larger than {} bytes, the most that it can have", limit));
}

// A shell has given it to this process for this: `--config=<(...)`, or /dev/stdin behind a pipe. So somebody writes to
// it.
bool is_pipe_of_this_process(const std::string& path) {
  struct stat found {};
  const bool is_ours = path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
  return is_ours && ::stat(path.c_str(), &found) == 0 && S_ISFIFO(found.st_mode);
}

// Up to `limit` bytes. False with errno set.
bool append(int descriptor, std::uint64_t limit, std::string& content) {
  constexpr std::size_t kAtOnce = std::size_t{1} << 20;
  while (content.size() < limit) {
    const std::size_t begin = content.size();
    content.resize(begin + std::min<std::uint64_t>(kAtOnce, limit - begin));
    const ssize_t count = ::read(descriptor, content.data() + begin, content.size() - begin);
    content.resize(begin + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0;
  }
  return true;
}

Result<std::string> read_from(int descriptor, const std::string& path, std::uint64_t limit) try {
  std::string content;
  if (!append(descriptor, limit + (limit < UINT64_MAX ? 1 : 0), content)) return cannot_read(path, errno);
  if (content.size() > limit) return too_large(path, limit);
  return content;
} catch (const std::bad_alloc&) {
  return failed(Code::kResourceExhausted, path, "there is no memory for its content");
} catch (const std::length_error&) {
  return failed(Code::kResourceExhausted, path, "there is no memory for its content");
}

}  // namespace

Result<RegularFile> open_regular_file(const std::string& path, Links links) {
  const int refuse = links == Links::kRefused ? O_NOFOLLOW : 0;
  RegularFile file;
  // To open a pipe would wait for its writer.
  file.descriptor = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | refuse));
  if (!file.descriptor.open()) {
    if (errno == ELOOP && refuse != 0) return not_a_file(path, name_of(S_IFLNK));
    if (errno == ENXIO) return not_a_file(path, name_of(S_IFSOCK));
    return cannot_read(path, errno);
  }
  struct stat found {};
  if (::fstat(file.descriptor.get(), &found) != 0) return cannot_read(path, errno);
  if (!S_ISREG(found.st_mode)) return not_a_file(path, name_of(found.st_mode));
  file.bytes = static_cast<std::uint64_t>(found.st_size);
  return file;
}

Result<std::string> read_regular_file(const std::string& path, std::uint64_t limit, Links links) {
  SYNCOPATE_ASSIGN_OR_RETURN(const RegularFile file, open_regular_file(path, links));
  if (file.bytes > limit) return too_large(path, limit);
  Result<std::string> content = read_from(file.descriptor.get(), path, file.bytes);
  if (!content.ok() || content->size() == file.bytes) return content;
  return failed(Code::kDataLoss, path, fmt::format("ends after {} of {} bytes", content->size(), file.bytes));
}

Result<std::string> read_input(const std::string& path, std::uint64_t limit) {
  if (!is_pipe_of_this_process(path)) return read_regular_file(path, limit);
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.open()) return cannot_read(path, errno);
  return read_from(file.get(), path, limit);
}

}  // namespace syncopate
