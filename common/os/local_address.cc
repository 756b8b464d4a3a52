#include "common/os/local_address.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "common/os/file_descriptor.h"
#include "common/os/socket_address.h"

namespace syncopate {
namespace {

constexpr std::uint16_t kAnyPort = 9;  // discard: a route is asked for, nothing is sent

}  // namespace

Result<std::string> local_address_towards(const std::string& host) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<SocketAddress> addresses, addresses_of(host));
  int error = 0;
  for (SocketAddress& address : addresses) {
    address.set_port(kAnyPort);
    const FileDescriptor socket(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (connect(socket.get(), address.get(), address.size()) == 0) {
      return SocketAddress::of_socket(socket.get()).host();
    }
    error = errno;
  }
  return Status::not_found(fmt::format("{}: cannot be reached from here ({})", host, std::strerror(error)));
}

Status check_own_address(const std::string& address) {
  SYNCOPATE_ASSIGN_OR_RETURN(const SocketAddress own, SocketAddress::of_host(address));
  const FileDescriptor socket(::socket(own.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(socket.get(), own.get(), own.size()) != 0) {
    return Status::invalid_argument(
        fmt::format("{}: must be an address of this host ({})", address, std::strerror(errno)));
  }
  return {};
}

std::string interface_of(const std::string& address) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, freeifaddrs);
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    const int family = entry->ifa_addr == nullptr ? AF_UNSPEC : entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (SocketAddress::of(entry->ifa_addr).host() == address) return entry->ifa_name;
  }
  return {};
}

}  // namespace syncopate
