#include "common/transport/local_socket.h"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>

#include "common/os/resource_limits.h"
#include "common/transport/waits.h"

namespace syncopate {
namespace {

struct LocalAddress {
  sockaddr_un address{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

// Names in the abstract namespace begin with a zero byte and have no end mark.
Result<LocalAddress> address_of(const std::string& name) {
  LocalAddress address{.address = {.sun_family = AF_UNIX, .sun_path = {}}};
  if (name.empty() || name.size() > sizeof(address.address.sun_path) - 1) {
    return Status::data_loss(fmt::format("{} characters are no name of a local socket", name.size()));
  }
  std::memcpy(address.address.sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

void wait_at_most(int socket, std::chrono::microseconds time) {  // for sends, and to connect; 0: for ever
  const timeval wait{.tv_sec = 0, .tv_usec = time.count()};
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

}  // namespace

std::string new_local_name() {
  constexpr std::size_t kBytes = 16;
  std::array<unsigned char, kBytes> name;
  std::array<char, 2 * kBytes + 1> text;
  randombytes_buf(name.data(), name.size());
  return std::string("syncopate-") + sodium_bin2hex(text.data(), text.size(), name.data(), name.size());
}

Result<FileDescriptor> listen_locally(const std::string& name) {
  SYNCOPATE_ASSIGN_OR_RETURN(const LocalAddress address, address_of(name));
  FileDescriptor listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.open()) return local_socket_failure("opening");
  if (bind(listener.get(), address.get(), address.length) != 0) return local_socket_failure("binding");
  if (listen(listener.get(), SOMAXCONN) != 0) return local_socket_failure("listening on");
  return listener;
}

Result<FileDescriptor> connect_locally(const std::string& name, const std::function<Status()>& check) {
  SYNCOPATE_ASSIGN_OR_RETURN(const LocalAddress address, address_of(name));
  FileDescriptor connection(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!connection.open()) return local_socket_failure("opening");
  wait_at_most(connection.get(), kLookUpEvery);
  while (connect(connection.get(), address.get(), address.length) != 0) {
    if (errno != EAGAIN && errno != EINTR) return local_socket_failure("connecting");
    SYNCOPATE_RETURN_IF_ERROR(check());
  }
  wait_at_most(connection.get(), std::chrono::microseconds(0));
  if (!is_of_own_user(connection.get())) return Status::peer_lost("another user listens in its name");
  return connection;
}

bool is_of_own_user(int connection) {
  ucred other{};
  socklen_t size = sizeof(other);
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == geteuid();
}

Status local_socket_failure(const char* what) {
  // Its listener, or its end of a connection, has gone with it.
  const bool is_gone = errno == EPIPE || errno == ECONNRESET || errno == ECONNREFUSED;
  const bool is_limit = errno == EMFILE || errno == ENFILE || errno == ETOOMANYREFS;
  return Status(is_gone    ? Code::kPeerLost
                : is_limit ? Code::kResourceExhausted
                           : Code::kInternal,
                fmt::format("{} a local socket: {}{}", what, std::strerror(errno), limit_behind(errno)));
}

}  // namespace syncopate
