// The messages on ZeroMQ: frame 1 is a ZmqPreamble and the message's header; frame 2, if there is one, is the payload.
// Frame 3 is then a ZmqTrailer. CURVE detects frames that are changed, repeated or moved, but not those that are left
// out on the way. Since the numbers at both ends of a message are equal, and messages' numbers are contiguous, nothing
// can be left out of a message, nor a message out of those that are received after it. Numbers are in the byte order of
// the machine, which is the same on all hosts of a run. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "common/transport/transport.h"

namespace syncopate {

struct ZmqPreamble {
  static constexpr std::uint32_t kMagic = 0x324E5953;  // "SYN2"

  std::uint32_t magic = kMagic;
  std::uint32_t from = 0;    // rank
  std::uint64_t run = 0;     // hash of run and group
  std::uint64_t number = 0;  // of the message, among those from this sender to this receiver
  std::uint64_t payload_bytes = 0;
};

struct ZmqTrailer {
  std::uint64_t number = 0;  // as in the preamble
};

// Reads the preamble of `head`, which is followed by a payload of `payload_bytes`. Returns null if that is a message of
// the run `run` by one of its `members`; otherwise a description of it, and `preamble` is undefined.
inline const char* objection_to(std::span<const std::byte> head, std::size_t payload_bytes, std::uint64_t run,
                                int members, ZmqPreamble& preamble) {
  if (head.size() < sizeof(preamble) || head.size() > sizeof(preamble) + kMaxWireHeaderBytes) {
    return "a header of impossible size";
  }
  std::memcpy(&preamble, head.data(), sizeof(preamble));
  if (preamble.magic != ZmqPreamble::kMagic) return "not a message of ours";
  if (preamble.run != run) return "a message of another run";
  if (preamble.from >= static_cast<std::uint32_t>(members)) return "an unknown sender";
  if (preamble.payload_bytes != payload_bytes) return "a payload of another size than announced";
  return nullptr;
}

}  // namespace syncopate
