#include "library/socket_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace syncopate::library {

Result<SocketAddress> resolve(const std::string& text) {
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  const char* const end = text.data() + text.size();
  std::uint16_t port = 0;
  const auto [stop, error] = std::from_chars(text.data() + std::min(colon + 1, text.size()), end, port);
  if (colon == 0 || colon == text.size() || error != std::errc() || stop != end) {
    return Status::invalid_argument(fmt::format("address '{}': must be HOST:PORT, as in 127.0.0.1:29500", text));
  }
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<SocketAddress> addresses, addresses_of(host));
  addresses.front().set_port(port);
  return addresses.front();
}

}  // namespace syncopate::library
