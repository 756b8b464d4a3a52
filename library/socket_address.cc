#include "library/socket_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace syncopate::library {

Result<sockaddr_in> resolve(const std::string& text) {
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  const char* const end = text.data() + text.size();
  in_port_t port = 0;
  const auto [stop, error] = std::from_chars(text.data() + std::min(colon + 1, text.size()), end, port);
  if (colon == 0 || colon == text.size() || error != std::errc() || stop != end) {
    return Status::invalid_argument(fmt::format("address '{}': must be HOST:PORT, as in 127.0.0.1:29500", text));
  }
  const addrinfo wanted{.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  const std::string host = text.substr(0, colon);
  if (const int failure = getaddrinfo(host.c_str(), nullptr, &wanted, &found); failure != 0) {
    return Status::not_found(fmt::format("{}: no IPv4 address is known ({})", host, gai_strerror(failure)));
  }
  sockaddr_in address{};
  std::memcpy(&address, found->ai_addr, sizeof(address));
  freeaddrinfo(found);
  address.sin_port = htons(port);
  return address;
}

std::string host_text_of(const sockaddr_in& address) {
  char host[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address.sin_addr, host, sizeof(host));
  return host;
}

std::string text_of(const sockaddr_in& address) {
  return fmt::format("{}:{}", host_text_of(address), ntohs(address.sin_port));
}

}  // namespace syncopate::library
