#include "common/os/process_handle.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>

#include "common/os/resource_limits.h"

namespace syncopate {

Result<ProcessHandle> ProcessHandle::of(pid_t pid) {
  FileDescriptor handle(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (handle.open()) return ProcessHandle(std::move(handle));
  const int error = errno;
  const Code code = error == ESRCH                       ? Code::kNotFound
                    : error == EMFILE || error == ENFILE ? Code::kResourceExhausted
                                                         : Code::kInternal;
  return Status(code, fmt::format("pidfd_open: {}{}", std::strerror(error), limit_behind(error)));
}

int ProcessHandle::send(int signal) const {
  return syscall(SYS_pidfd_send_signal, descriptor(), signal, nullptr, 0) == 0 ? 0 : errno;
}

pid_t parent_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  // "4711 (name, which may contain anything) S 4710 ..."
  const std::size_t end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos || line.size() < end_of_name + 4) return 0;
  pid_t parent = 0;
  std::from_chars(line.data() + end_of_name + 4, line.data() + line.size(), parent);
  return parent;
}

}  // namespace syncopate
