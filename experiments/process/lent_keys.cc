#include "experiments/process/lent_keys.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace syncopate::experiments {

Result<FileDescriptor> lend(const std::string& line, bool inherited) {
  FileDescriptor lent(memfd_create("keys", inherited ? 0 : MFD_CLOEXEC));
  const std::string text = line + "\n";
  if (!lent.open() || write(lent.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return Status(Code::kInternal, fmt::format("cannot lend the run's keys: {}", strerror(errno)));
  }
  return lent;
}

std::string path_of(const FileDescriptor& lent) { return fmt::format("/proc/{}/fd/{}", getpid(), lent.get()); }

Result<std::string> lent_line() {
  const char* const path = std::getenv(kLentKeys);
  if (path == nullptr) return Status(Code::kInternal, fmt::format("the run's keys are not lent: no {}", kLentKeys));
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line.empty()) {
    return Status(Code::kPeerLost, fmt::format("the run's keys are not lent any more at {}", path));
  }
  return line;
}

Result<std::string> line_on_stdin(TimePoint deadline) {
  std::string text;
  for (char next = 0; next != '\n'; text += next) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock().now());
    pollfd item{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int ready = poll(&item, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready <= 0) return Status(Code::kDeadlineExceeded, "the run's keys have not come on standard input");
    if (read(STDIN_FILENO, &next, 1) != 1) {
      return Status(Code::kPeerLost,
                    "standard input has ended before the run's keys came; a remote shell must pass it on");
    }
  }
  text.pop_back();
  return text;
}

}  // namespace syncopate::experiments
