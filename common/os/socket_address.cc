#include "common/os/socket_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <cassert>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>

namespace syncopate {
namespace {

constexpr std::uint32_t kLoopbackNetwork = 127;

// What it means depends on the link, which others number in their own way.
bool is_of_a_link(const sockaddr* address) {
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

}  // namespace

Result<SocketAddress> SocketAddress::of_host(const std::string& host, std::uint16_t port) {
  SocketAddress address;
  sockaddr_in four{.sin_family = AF_INET};
  sockaddr_in6 six{.sin6_family = AF_INET6};
  if (inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
    std::memcpy(&address.storage_, &four, sizeof(four));
  } else if (inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1) {
    std::memcpy(&address.storage_, &six, sizeof(six));
  } else {
    return Status::invalid_argument(
        fmt::format("{}: must be an IPv4 or IPv6 address, as in 10.0.0.7 or fd00::7", host));
  }
  address.set_port(port);
  return address;
}

Result<SocketAddress> SocketAddress::parse(std::string_view text) {
  const auto wrong = [&] {
    return Status::invalid_argument(fmt::format("'{}' is not an address and a port, as in 10.0.0.7:4711", text));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong();
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
  std::string_view host = text.substr(0, colon);
  const bool in_brackets = host.starts_with('[') && host.ends_with(']');
  if (in_brackets) host = host.substr(1, host.size() - 2);
  if (error != std::errc() || stop != end || port == 0) return wrong();
  const Result<SocketAddress> address = of_host(std::string(host), port);
  if (!address.ok() || in_brackets != (address->family() == AF_INET6)) return wrong();
  return address;
}

SocketAddress SocketAddress::of(const sockaddr* address) {
  assert(address->sa_family == AF_INET || address->sa_family == AF_INET6);
  SocketAddress copy;
  std::memcpy(&copy.storage_, address, address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  return copy;
}

SocketAddress SocketAddress::of_socket(int socket) {
  SocketAddress address;
  socklen_t size = sizeof(address.storage_);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage_), &size);
  return address;
}

socklen_t SocketAddress::size() const { return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = {};
  const auto* const bytes = reinterpret_cast<const char*>(&storage_);
  const std::size_t begin = family() == AF_INET ? offsetof(sockaddr_in, sin_addr) : offsetof(sockaddr_in6, sin6_addr);
  inet_ntop(family(), bytes + begin, text, sizeof(text));
  return text;
}

std::string SocketAddress::to_string() const { return with_port(host(), std::to_string(port())); }

std::uint16_t SocketAddress::port() const {
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

void SocketAddress::set_port(std::uint16_t port) { reinterpret_cast<sockaddr_in*>(&storage_)->sin_port = htons(port); }

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr);
  const in_addr four = reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr;
  return ntohl(four.s_addr) >> 24 == kLoopbackNetwork;
}

Result<std::vector<SocketAddress>> addresses_of(const std::string& host) {
  const addrinfo wanted{.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &wanted, &found); error != 0) {
    return Status::not_found(fmt::format("{}: no address is known ({})", host, gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      if (one->ai_family == family && !is_of_a_link(one->ai_addr)) addresses.push_back(SocketAddress::of(one->ai_addr));
    }
  }
  if (addresses.empty()) return Status::not_found(fmt::format("{}: no address is known that others can use", host));
  return addresses;
}

std::string with_port(const std::string& host, std::string_view port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

}  // namespace syncopate
