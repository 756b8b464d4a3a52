#include "experiments/cluster/tasks/task_socket.h"

#include <fmt/format.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace syncopate::experiments {
namespace {

Status failure(const char* what, const SocketAddress& address) {
  const Code code = errno == EADDRINUSE || errno == EMFILE           ? Code::kResourceExhausted
                    : errno == ECONNREFUSED || errno == EHOSTUNREACH ? Code::kPeerLost
                                                                     : Code::kInternal;
  return Status(code, fmt::format("{} {}: {}", what, address.to_string(), std::strerror(errno)));
}

Result<FileDescriptor> new_socket(const SocketAddress& address) {
  FileDescriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) return failure("opening a socket for", address);
  return socket;
}

}  // namespace

Result<FileDescriptor> listen_at(const SocketAddress& address) {
  SYNCOPATE_ASSIGN_OR_RETURN(FileDescriptor socket, new_socket(address));
  // A port that the last run has left a moment ago is free.
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket.get(), address.get(), address.size()) != 0 || listen(socket.get(), SOMAXCONN) != 0) {
    return failure("listening at", address);
  }
  return socket;
}

Result<FileDescriptor> begin_connection(const SocketAddress& address) {
  SYNCOPATE_ASSIGN_OR_RETURN(FileDescriptor socket, new_socket(address));
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (connect(socket.get(), address.get(), address.size()) != 0 && errno != EINPROGRESS) {
    return failure("connecting to", address);
  }
  return socket;
}

void lose_when_silent(int socket, Duration silence) {
  constexpr int kProbes = 3;
  const int on = 1;
  const auto whole = std::max(static_cast<int>(std::chrono::ceil<std::chrono::seconds>(silence).count()), kProbes + 1);
  const int each = whole / (kProbes + 1);
  const unsigned milliseconds = static_cast<unsigned>(whole) * 1000;
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &each, sizeof(each));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &each, sizeof(each));
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof(kProbes));
  // For what has been sent and is not confirmed.
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
}

}  // namespace syncopate::experiments
