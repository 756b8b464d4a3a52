#include "worker/data/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "common/os/regular_file.h"
#include "common/os/resource_limits.h"
#include "common/text/printable_text.h"
#include "worker/data/gzip.h"

namespace syncopate::worker {
namespace {

constexpr std::size_t kInflatedLimit = std::size_t{4} << 30;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 42;
constexpr std::uint64_t kPopulated = std::uint64_t{8} << 30;

std::string shown(const std::string& path) { return printable(path, 4096); }

Status cannot_read(const std::string& path, int error) {
  const bool is_exhausted = error == ENOMEM || error == EAGAIN || error == EMFILE || error == ENFILE;
  return {is_exhausted ? Code::kResourceExhausted : Code::kNotFound,
          fmt::format("{}: cannot be read: {}{}", shown(path), std::generic_category().message(error),
                      limit_behind(error))};
}

}  // namespace

FileBytes::FileBytes(std::string path, std::span<const std::uint8_t> mapping)
    : path_(std::move(path)), bytes_(mapping) {}

FileBytes::FileBytes(std::string path, std::vector<std::uint8_t> inflated)
    : path_(std::move(path)), inflated_(std::move(inflated)), bytes_(inflated_) {}

FileBytes::FileBytes(FileBytes&& other) noexcept
    : path_(std::move(other.path_)),
      inflated_(std::move(other.inflated_)),
      bytes_(std::exchange(other.bytes_, std::span<const std::uint8_t>())) {}

FileBytes& FileBytes::operator=(FileBytes&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(inflated_, other.inflated_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

FileBytes::~FileBytes() {
  const bool mapped = inflated_.empty() && !bytes_.empty();
  if (mapped) ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

Result<FileBytes> FileBytes::open(const std::string& path) {
  SYNCOPATE_ASSIGN_OR_RETURN(const RegularFile file, open_regular_file(path));
  if (file.bytes == 0) return Status::data_loss("is empty").in(shown(path));
  if (file.bytes > kMostBytes)
    return Status::data_loss(fmt::format("{} bytes, {} at most", file.bytes, kMostBytes)).in(shown(path));

  // Populated at once: the faults belong to the start of a run, not to its first steps. What is larger than memory may
  // be is not: of a file without blocks, the kernel would make pages without end.
  const auto size = static_cast<std::size_t>(file.bytes);
  const int populate = size <= kPopulated ? MAP_POPULATE : 0;
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED | populate, file.descriptor.get(), 0);
  if (memory == MAP_FAILED) return cannot_read(path, errno);
  FileBytes mapped(path, std::span(static_cast<const std::uint8_t*>(memory), size));
  if (!path.ends_with(".gz")) return mapped;

  Result<std::vector<std::uint8_t>> inflated = inflate_gzip(mapped.bytes(), kInflatedLimit);
  if (!inflated.ok()) return inflated.status().in(shown(path));
  if (inflated->empty()) return Status::data_loss("is empty once inflated").in(shown(path));
  return FileBytes(path, std::move(*inflated));
}

Result<std::vector<std::uint8_t>> read_first_bytes(const std::string& path, std::size_t count) {
  SYNCOPATE_ASSIGN_OR_RETURN(const RegularFile opened, open_regular_file(path));
  // Reads plain files as they are. It closes what it is given.
  const int descriptor = ::fcntl(opened.descriptor.get(), F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(::gzdopen(descriptor, "rb"), ::gzclose);
  if (!file) return cannot_read(path, errno);
  std::vector<std::uint8_t> bytes(count);
  const int read = ::gzread(file.get(), bytes.data(), static_cast<unsigned>(count));
  if (read == static_cast<int>(count)) return bytes;
  return Status::data_loss(fmt::format("truncated: {} bytes, the header alone has {}", std::max(read, 0), count))
      .in(shown(path));
}

}  // namespace syncopate::worker
