#include "experiments/cluster/process/loopback_binds.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "common/os/process_handle.h"
#include "common/os/socket_address.h"

namespace syncopate::experiments {
namespace {

// Copies the address that another thread has given to bind; one that is too short is 0 behind its end.
bool read_address(pid_t thread, std::uint64_t at, std::size_t size, sockaddr_storage& address) {
  const iovec here{.iov_base = &address, .iov_len = std::min(size, sizeof(address))};
  const iovec there{.iov_base = reinterpret_cast<void*>(at), .iov_len = here.iov_len};
  return process_vm_readv(thread, &here, 1, &there, 1, 0) == static_cast<ssize_t>(here.iov_len);
}

bool write_address(pid_t thread, std::uint64_t at, std::size_t size, sockaddr_storage& address) {
  const iovec here{.iov_base = &address, .iov_len = std::min(size, sizeof(address))};
  const iovec there{.iov_base = reinterpret_cast<void*>(at), .iov_len = here.iov_len};
  return process_vm_writev(thread, &here, 1, &there, 1, 0) == static_cast<ssize_t>(here.iov_len);
}

constexpr in6_addr kMappedLoopback{{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}}};

// Makes all interfaces the loopback one, with the same port. Returns whether that is a change.
bool narrow(sockaddr_storage& address) {
  // An address of no family is one of IPv4 to the kernel, where it means all interfaces (inet_bind).
  if (address.ss_family == AF_INET || address.ss_family == AF_UNSPEC) {
    auto& ipv4 = reinterpret_cast<sockaddr_in&>(address);
    if (ipv4.sin_addr.s_addr != htonl(INADDR_ANY)) return false;
    ipv4.sin_family = AF_INET;
    ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return true;
  }
  if (address.ss_family != AF_INET6) return false;
  auto& ipv6 = reinterpret_cast<sockaddr_in6&>(address);
  in6_addr mapped_any = kMappedLoopback;  // ::ffff:0.0.0.0
  std::fill_n(mapped_any.s6_addr + 12, 4, std::uint8_t{0});
  if (IN6_ARE_ADDR_EQUAL(&ipv6.sin6_addr, &mapped_any)) {
    ipv6.sin6_addr = kMappedLoopback;
    return true;
  }
  if (!IN6_IS_ADDR_UNSPECIFIED(&ipv6.sin6_addr)) return false;
  ipv6.sin6_addr = in6addr_loopback;
  return true;
}

// Whether a thread binds what it may, perhaps elsewhere than it had asked for.
bool settle_bind(pid_t thread, std::uint64_t at, std::size_t size) {
  sockaddr_storage address{};
  return read_address(thread, at, size, address) && (!narrow(address) || write_address(thread, at, size, address));
}

// Returns the process that a thread is of; -1: it is gone.
pid_t process_of(pid_t thread) {
  constexpr std::string_view kProcess = "Tgid:";
  std::ifstream status(fmt::format("/proc/{}/status", thread));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(kProcess)) return static_cast<pid_t>(std::strtol(line.c_str() + kProcess.size(), nullptr, 10));
  }
  return -1;
}

// The kernel gives a socket that listens without a bind all interfaces: it is tied to the loopback device before.
bool settle_listen(pid_t thread, int handle) {
  const Result<ProcessHandle> process = ProcessHandle::of(process_of(thread));
  if (!process.ok()) return false;
  const FileDescriptor socket(static_cast<int>(syscall(SYS_pidfd_getfd, process->descriptor(), handle, 0)));
  if (!socket.open()) return errno == EBADF;  // as listen(2) itself says
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return true;
  const bool is_of_internet = address.ss_family == AF_INET || address.ss_family == AF_INET6;
  if (!is_of_internet || SocketAddress::of_socket(socket.get()).port() != 0) return true;
  constexpr char kDevice[] = "lo";
  return setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, kDevice, sizeof(kDevice)) == 0;
}

}  // namespace

Result<LoopbackBinds> LoopbackBinds::begin() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bind, 1, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_listen, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog filter{.len = std::size(steps), .filter = steps};
  const int handle =
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
          ? -1
          : static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter));
  if (handle < 0) return Status::internal(std::strerror(errno));
  return LoopbackBinds(FileDescriptor(handle));
}

void LoopbackBinds::answer() const {
  seccomp_notif question{};
  if (ioctl(questions_.get(), SECCOMP_IOCTL_NOTIF_RECV, &question) != 0) return;  // its thread is gone
  const auto thread = static_cast<pid_t>(question.pid);
  const auto& arguments = question.data.args;
  const bool is_settled = question.data.nr == SYS_listen
                              ? settle_listen(thread, static_cast<int>(arguments[0]))
                              : settle_bind(thread, arguments[1], static_cast<std::size_t>(arguments[2]));
  // The kernel reads the address anew.
  seccomp_notif_resp answer{.id = question.id, .val = 0, .error = is_settled ? 0 : -EACCES, .flags = 0};
  if (is_settled) answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  ioctl(questions_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

}  // namespace syncopate::experiments
