#include "common/os/local_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "common/os/file_descriptor.h"

namespace syncopate {
namespace {

constexpr in_port_t kAnyPort = 9;  // discard: a route is asked for, nothing is sent

std::string text_of(const in_addr& address) {
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address, text, sizeof(text));
  return text;
}

}  // namespace

Result<std::string> local_address_towards(const std::string& host) {
  const addrinfo wanted{.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM};
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &wanted, &found); error != 0) {
    return Status::not_found(fmt::format("{}: no IPv4 address is known ({})", host, gai_strerror(error)));
  }
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof(address));
  freeaddrinfo(found);
  address.sin_port = htons(kAnyPort);
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{};
  socklen_t size = sizeof(own);
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    return Status::not_found(fmt::format("{}: cannot be reached from here ({})", host, std::strerror(errno)));
  }
  return text_of(own.sin_addr);
}

Status check_own_address(const std::string& address) {
  sockaddr_in own{.sin_family = AF_INET};
  if (inet_pton(AF_INET, address.c_str(), &own.sin_addr) != 1) {
    return Status::invalid_argument(fmt::format("{}: must be an IPv4 address, as in 10.0.0.7", address));
  }
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0) {
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
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in own{};
    std::memcpy(&own, entry->ifa_addr, sizeof(own));
    if (text_of(own.sin_addr) == address) return entry->ifa_name;
  }
  return {};
}

}  // namespace syncopate
