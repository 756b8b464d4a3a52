#include "experiments/cluster/process/loopback_binds.h"

#include <arpa/inet.h>
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
#include <cstring>

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

// Makes all interfaces the loopback one, with the same port. Returns whether that is a change.
bool narrow(sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    auto& ipv4 = reinterpret_cast<sockaddr_in&>(address);
    if (ipv4.sin_addr.s_addr != htonl(INADDR_ANY)) return false;
    ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return true;
  }
  if (address.ss_family != AF_INET6) return false;
  auto& ipv6 = reinterpret_cast<sockaddr_in6&>(address);
  if (!IN6_IS_ADDR_UNSPECIFIED(&ipv6.sin6_addr)) return false;
  ipv6.sin6_addr = in6addr_loopback;
  return true;
}

}  // namespace

Result<LoopbackBinds> LoopbackBinds::begin() {
  sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bind, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
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
  const std::uint64_t at = question.data.args[1];
  const auto size = static_cast<std::size_t>(question.data.args[2]);
  sockaddr_storage address{};
  const bool is_settled =
      read_address(thread, at, size, address) && (!narrow(address) || write_address(thread, at, size, address));
  // The kernel reads the address anew.
  seccomp_notif_resp answer{.id = question.id, .val = 0, .error = is_settled ? 0 : -EACCES, .flags = 0};
  if (is_settled) answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  ioctl(questions_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

}  // namespace syncopate::experiments
