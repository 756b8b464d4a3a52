#include "common/os/resource_limits.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

namespace syncopate {
namespace {

constexpr rlim_t kMostDescriptors = 65536;

rlimit limit_of(__rlimit_resource resource) {
  rlimit limit{};
  getrlimit(resource, &limit);
  return limit;
}

std::string raise_it(const char* flag, rlim_t value, const char* what) {
  if (value == RLIM_INFINITY) return "";
  return fmt::format("; ulimit {} is {}{}: raise it", flag, value, what);
}

std::string memory_limit() {
  const rlim_t bytes = limit_of(RLIMIT_AS).rlim_cur;
  return raise_it("-v", bytes == RLIM_INFINITY ? bytes : bytes / 1024, " KiB of memory");
}

}  // namespace

void raise_descriptor_limit() {
  rlimit limit = limit_of(RLIMIT_NOFILE);
  const rlim_t wanted = std::max(limit.rlim_cur, std::min(limit.rlim_max, kMostDescriptors));
  if (wanted == limit.rlim_cur) return;
  limit.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::int64_t descriptor_limit() {
  const rlim_t limit = limit_of(RLIMIT_NOFILE).rlim_cur;
  return static_cast<std::int64_t>(std::min<rlim_t>(limit, std::int64_t{1} << 40));
}

bool has_free_descriptor() {
  const int copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  if (copy >= 0) ::close(copy);
  return copy >= 0 || (errno != EMFILE && errno != ENFILE);
}

Status check_threads(int threads) {
  std::latch end(1);
  std::vector<std::jthread> started;
  Status status;
  try {
    for (int i = 0; i < threads; ++i) started.emplace_back([&end] { end.wait(); });
  } catch (const std::system_error& error) {
    status = Status::resource_exhausted(fmt::format("no thread can be started beside {} others: {}{}", started.size(),
                                                    error.code().message(), limit_behind(error.code().value())));
  }
  end.count_down();
  return status;
}

std::string limit_behind(int error) {
  switch (error) {
    case EAGAIN:  // of threads, which also need memory for their stacks
      if (const std::string limit = memory_limit(); !limit.empty()) return limit;
      return raise_it("-u", limit_of(RLIMIT_NPROC).rlim_cur, " processes and threads of this user");
    case EMFILE:
      return raise_it("-n", limit_of(RLIMIT_NOFILE).rlim_cur, " descriptors");
    case ETOOMANYREFS:
      return raise_it("-n", limit_of(RLIMIT_NOFILE).rlim_cur, " descriptors, also of those that are on their way");
    case ENOMEM:
      return memory_limit();
    default:
      return "";
  }
}

bool with_own_descriptors(const std::function<void()>& work) {
  bool done = false;
  std::jthread([&] {
    if (unshare(CLONE_FILES) != 0) return;
    close_range(STDERR_FILENO + 1, ~0U, 0);
    work();
    done = true;
  }).join();
  return done;
}

}  // namespace syncopate
