#include "common/transport/transport.h"

#include <fmt/format.h>

namespace syncopate {

Status check_payload(std::span<const std::byte> payload) {
  if (payload.size() <= kMaxPayloadBytes) return Status();
  return Status(Code::kInvalidArgument,
                fmt::format("a payload of {} bytes: must be at most {}", payload.size(), kMaxPayloadBytes));
}

}  // namespace syncopate
