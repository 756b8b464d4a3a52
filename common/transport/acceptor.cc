#include "common/transport/acceptor.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "common/text/log.h"

namespace syncopate {
namespace {

constexpr std::chrono::milliseconds kRest{50};

std::string describe(int error) {
  rlimit limit{};
  if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    return fmt::format("this process may have {} files open and has them: raise that (ulimit -n)", limit.rlim_cur);
  }
  if (error == ENFILE) return "the host has as many files open as it may: raise that (sysctl fs.file-max)";
  return std::strerror(error);
}

}  // namespace

FileDescriptor Acceptor::accept(int flags) {
  FileDescriptor connection(accept4(listener_.get(), nullptr, nullptr, flags | SOCK_CLOEXEC));
  const int error = errno;
  if (connection.open()) {
    rests_until_ = {};
  } else if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
    rests_until_ = clock_.now() + kRest;
    if (shortage_.empty()) log_warning("{}: connections cannot be taken: {}", name_, describe(error));
    shortage_ = "; some could not be taken: " + describe(error);
  }
  return connection;
}

}  // namespace syncopate
