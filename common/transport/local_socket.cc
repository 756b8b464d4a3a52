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
#include "common/os/socket_user.h"
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

// The kernel's word.
std::optional<ucred> who_is_at_other_end(int connection) {
  ucred other{};
  socklen_t size = sizeof(other);
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &size) != 0) return std::nullopt;
  return other;
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
  if (bind(listener.get(), address.get(), address.length) != 0) {
    if (errno != EADDRINUSE) return local_socket_failure("binding");
    return Status::resource_exhausted(
        fmt::format("the name '@{}' of a local socket is taken: {} has it", name, holder_of_local_name(name)));
  }
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
  const std::optional<ucred> other = who_is_at_other_end(connection.get());
  if (!other) return local_socket_failure("asking who is at the other end of");
  if (other->uid != geteuid()) {
    return Status::peer_lost(fmt::format("{}, pid {}, listens in its name, '@{}', and was told nothing: an intruder",
                                         describe_user(other->uid), other->pid, name));
  }
  return connection;
}

bool is_of_own_user(int connection) {
  const std::optional<ucred> other = who_is_at_other_end(connection);
  return other && other->uid == geteuid();
}

std::string holder_of_local_name(const std::string& name) {
  const Result<LocalAddress> address = address_of(name);
  if (!address.ok()) return "";
  for (const int type : {SOCK_SEQPACKET, SOCK_STREAM}) {  // one of the other kind refuses
    const FileDescriptor connection(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(connection.get(), address->get(), address->length) != 0) continue;
    if (const auto other = who_is_at_other_end(connection.get())) {
      return fmt::format("{}, pid {}", describe_user(other->uid), other->pid);
    }
  }
  return "a process that does not listen";
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
