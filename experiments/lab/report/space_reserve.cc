#include "experiments/lab/report/space_reserve.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "common/random.h"

namespace syncopate::experiments {
namespace {

bool write_all(int file, std::size_t bytes) {
  // No two blocks are alike, and none can be made smaller: a file system that compresses gives it all the same.
  Random random(static_cast<std::uint64_t>(::getpid()), static_cast<std::uint64_t>(file));
  std::vector<std::uint64_t> block(std::size_t{1} << 17);
  while (bytes > 0) {
    for (std::uint64_t& word : block) word = random.next();
    const ssize_t written = ::write(file, block.data(), std::min(bytes, block.size() * sizeof(block[0])));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes -= static_cast<std::size_t>(written);
  }
  return ::fsync(file) == 0;  // only then has a disk that is allocated late given it
}

}  // namespace

Result<SpaceReserve> SpaceReserve::take(const std::string& folder, std::size_t bytes) {
  std::string path = folder + "/.reserve-XXXXXX";
  FileDescriptor file(::mkostemp(path.data(), O_CLOEXEC));
  const bool is_taken = file.open() && ::unlink(path.c_str()) == 0 && write_all(file.get(), bytes);
  if (is_taken) return SpaceReserve(std::move(file));
  return Status::resource_exhausted(fmt::format("{}: cannot be written: {}", folder, std::strerror(errno)));
}

}  // namespace syncopate::experiments
