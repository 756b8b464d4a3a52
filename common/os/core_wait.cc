#include "common/os/core_wait.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

namespace syncopate {
namespace {

// The file has three numbers: nanoseconds on a core, nanoseconds ready without one, and how often it was given one.
std::optional<Duration> read_core_wait(int file) {
  std::array<char, 96> text{};
  const ssize_t size = pread(file, text.data(), text.size(), 0);
  if (size <= 0) return std::nullopt;
  std::string_view rest(text.data(), static_cast<std::size_t>(size));
  const std::size_t blank = rest.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(blank + 1);
  std::int64_t nanoseconds = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), nanoseconds);
  if (error != std::errc() || end == rest.data()) return std::nullopt;
  return Duration(nanoseconds);
}

}  // namespace

std::optional<CoreWait> CoreWait::of_this_thread() {
  FileDescriptor file(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 || !read_core_wait(file.get())) return std::nullopt;
  return CoreWait(std::move(file));
}

Duration CoreWait::total() const { return read_core_wait(file_.get()).value_or(Duration::zero()); }

Duration core_wait_of_this_thread() {
  thread_local const std::optional<CoreWait> of_this = CoreWait::of_this_thread();
  return of_this ? of_this->total() : Duration::zero();
}

}  // namespace syncopate
