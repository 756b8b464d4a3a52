// SocketAddress: the address of a TCP or UDP socket, IPv4 or IPv6, as text and as the kernel takes it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace syncopate {

class SocketAddress {
 public:
  // Takes an address without its port: "10.0.0.7" or "fd00::1". Fails with invalid argument if it is none; names are
  // not looked up.
  static Result<SocketAddress> of_host(const std::string& host, std::uint16_t port = 0);
  // Reads "10.0.0.7:4711" or "[fd00::1]:4711". Fails with invalid argument.
  static Result<SocketAddress> parse(std::string_view text);
  // Takes what the kernel has filled in. Requires AF_INET or AF_INET6.
  static SocketAddress of(const sockaddr* address);
  // Returns the address that this socket is bound to. Requires a socket that is.
  static SocketAddress of_socket(int socket);

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const;
  int family() const { return storage_.ss_family; }

  std::string host() const;       // "10.0.0.7", "fd00::1"
  std::string to_string() const;  // what parse() reads
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  // Returns whether it leads nowhere but to the own host.
  bool is_loopback() const;

 private:
  SocketAddress() = default;

  sockaddr_storage storage_{};
};

// Looks up a name, or takes an address. Returns all addresses that others can use, those of IPv4 first. Fails with not
// found.
Result<std::vector<SocketAddress>> addresses_of(const std::string& host);

// Returns "10.0.0.7:4711" or "[fd00::1]:4711": host and port, between which an address of IPv6 needs brackets. `port`
// may be "*".
std::string with_port(const std::string& host, std::string_view port);

}  // namespace syncopate
