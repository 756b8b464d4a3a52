#include "worker/data/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

#include "worker/data/gzip.h"

namespace syncopate::worker {
namespace {

constexpr std::size_t kInflatedLimit = std::size_t{4} << 30;

Status cannot_read(const std::string& path, int error) {
  return Status(Code::kNotFound, fmt::format("{}: cannot be read: {}", path, std::generic_category().message(error)));
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int value() const { return value_; }

 private:
  int value_;
};

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
  const Descriptor file(path);
  struct stat status {};
  if (file.value() < 0 || ::fstat(file.value(), &status) != 0) return cannot_read(path, errno);
  if (!S_ISREG(status.st_mode)) return Status(Code::kNotFound, fmt::format("{}: is not a regular file", path));
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return Status(Code::kDataLoss, fmt::format("{}: is empty", path));

  // Populated at once: the faults belong to the start of a run, not to its first steps.
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_POPULATE, file.value(), 0);
  if (memory == MAP_FAILED) return cannot_read(path, errno);
  FileBytes mapped(path, std::span(static_cast<const std::uint8_t*>(memory), size));
  if (!path.ends_with(".gz")) return mapped;

  Result<std::vector<std::uint8_t>> inflated = inflate_gzip(mapped.bytes(), kInflatedLimit);
  if (!inflated.ok()) return inflated.status().in(path);
  if (inflated->empty()) return Status(Code::kDataLoss, fmt::format("{}: is empty once inflated", path));
  return FileBytes(path, std::move(*inflated));
}

Result<std::vector<std::uint8_t>> read_first_bytes(const std::string& path, std::size_t count) {
  // Reads plain files as they are.
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(::gzopen(path.c_str(), "rb"), ::gzclose);
  if (!file) return cannot_read(path, errno);
  std::vector<std::uint8_t> bytes(count);
  const int read = ::gzread(file.get(), bytes.data(), static_cast<unsigned>(count));
  if (read == static_cast<int>(count)) return bytes;
  return Status(Code::kDataLoss,
                fmt::format("{}: truncated: {} bytes, the header alone has {}", path, std::max(read, 0), count));
}

}  // namespace syncopate::worker
