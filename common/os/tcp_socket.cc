#include "common/os/tcp_socket.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace syncopate {
namespace {

Status refused_by_kernel() {
  const Code code = errno == EADDRINUSE || errno == EMFILE           ? Code::kResourceExhausted
                    : errno == ECONNREFUSED || errno == EHOSTUNREACH ? Code::kPeerLost
                                                                     : Code::kInternal;
  return Status(code, std::strerror(errno));
}

Result<FileDescriptor> new_tcp_socket(const SocketAddress& address) {
  FileDescriptor socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) return refused_by_kernel();
  return socket;
}

}  // namespace

Result<FileDescriptor> listen_over_tcp(const SocketAddress& address) {
  SYNCOPATE_ASSIGN_OR_RETURN(FileDescriptor socket, new_tcp_socket(address));
  // A port that the last run has left a moment ago is free.
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(socket.get(), address.get(), address.size()) != 0 || listen(socket.get(), SOMAXCONN) != 0) {
    return refused_by_kernel();
  }
  return socket;
}

Result<FileDescriptor> begin_tcp_connection(const SocketAddress& address) {
  SYNCOPATE_ASSIGN_OR_RETURN(FileDescriptor socket, new_tcp_socket(address));
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (connect(socket.get(), address.get(), address.size()) != 0 && errno != EINPROGRESS) {
    return refused_by_kernel();
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

}  // namespace syncopate
