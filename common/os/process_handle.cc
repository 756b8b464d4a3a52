#include "common/os/process_handle.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

}  // namespace syncopate
