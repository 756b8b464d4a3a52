#include "common/transport/transport.h"

#include <fmt/format.h>

namespace syncopate {

Status check_message(std::string_view header, std::span<const std::byte> payload, std::uint64_t largest) {
  if (header.size() > kMaxWireHeaderBytes) {
    return Status::invalid_argument(
        fmt::format("a header of {} bytes: must be at most {}", header.size(), kMaxWireHeaderBytes));
  }
  if (payload.size() > largest) {
    return Status::invalid_argument(fmt::format("a payload of {} bytes: must be at most {}", payload.size(), largest));
  }
  return Status();
}

}  // namespace syncopate
