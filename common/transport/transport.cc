#include "common/transport/transport.h"

#include <fmt/format.h>

namespace syncopate {

Status check_payload(std::span<const std::byte> payload, std::uint64_t largest) {
  if (payload.size() <= largest) return Status();
  return Status::invalid_argument(fmt::format("a payload of {} bytes: must be at most {}", payload.size(), largest));
}

}  // namespace syncopate
