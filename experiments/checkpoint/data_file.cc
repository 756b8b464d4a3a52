#include "experiments/checkpoint/data_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>

#include "common/os/regular_file.h"
#include "common/text/format.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kReserve = 8 << 20;  // for steps and evaluations of some hours, and the summary

Status cannot(const std::string& path, const char* what, Code code) {
  return {code, fmt::format("{}: cannot be {}: {}", path, what, std::strerror(errno))};
}

}  // namespace

Result<DataFile> DataFile::make(std::string path, std::uint64_t bytes) {
  FileDescriptor descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!descriptor.open() || ::ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0) {
    return cannot(path, "written", Code::kResourceExhausted);
  }
  return DataFile(std::move(path), std::move(descriptor), bytes);
}

Result<DataFile> DataFile::open(std::string path) {
  Result<RegularFile> file = open_regular_file(path, Links::kRefused);
  if (!file.ok()) return Status::data_loss(file.status().message());
  return DataFile(std::move(path), std::move(file->descriptor), file->bytes);
}

Status DataFile::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return cannot(path_, "written", Code::kResourceExhausted);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Status DataFile::read(std::span<std::byte> bytes, std::uint64_t offset) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot(path_, "read", Code::kDataLoss);
    if (count == 0) return Status::data_loss(fmt::format("{}: ends after {} bytes", path_, offset));
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

Status DataFile::sync() {
  return ::fsync(descriptor_.get()) == 0 ? Status() : cannot(path_, "written", Code::kResourceExhausted);
}

Status sync_folder(const std::string& path) {
  const FileDescriptor descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EINVAL: the file system does not support fsync.
  const bool synced = descriptor.open() && (::fsync(descriptor.get()) == 0 || errno == EINVAL);
  return synced ? Status() : cannot(path, "written", Code::kResourceExhausted);
}

Status check_room(const std::string& folder, std::uint64_t bytes) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return cannot(folder, "written", Code::kResourceExhausted);
  const std::uint64_t room = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (room >= bytes + kReserve) return {};
  return Status::resource_exhausted(
      fmt::format("{}: {} are free, and {} are needed, {} of them for what else the run writes", folder,
                  format_bytes(static_cast<double>(room)), format_bytes(static_cast<double>(bytes + kReserve)),
                  format_bytes(static_cast<double>(kReserve))));
}

}  // namespace syncopate::experiments
