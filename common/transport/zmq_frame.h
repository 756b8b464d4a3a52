// The messages on ZeroMQ, in parts that follow each other on one connection: a ZmqPreamble with the message's header;
// if there is a payload, this, and then a ZmqTrailer. CURVE detects parts that are changed, repeated or moved, but not
// those that are left out on the way. Since the numbers at both ends of a message are equal, and messages' numbers are
// contiguous, nothing can be left out of a message, nor a message out of those that are received after it. Numbers are
// in the byte order of the machine, which is the same on all hosts of a run. Pure.
//
// The parts are messages of their own to ZeroMQ, not frames of one: libzmq ends the process (session_base.cpp, in
// clean_pipes) if a connection breaks between two frames of a message while its socket is being closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "common/transport/transport.h"

namespace syncopate {

struct ZmqPreamble {
  static constexpr std::uint32_t kMagic = 0x334E5953;  // "SYN3"

  std::uint32_t magic = kMagic;
  std::uint32_t from = 0;    // rank
  std::uint64_t run = 0;     // hash of run and group
  std::uint64_t number = 0;  // of the message, among those from this sender to this receiver
  std::uint64_t payload_bytes = 0;
};

struct ZmqTrailer {
  std::uint64_t number = 0;  // as in the preamble
};

// Reads the preamble of `head`, which member `from` has sent. Returns null if it begins a message of the run `run`, in
// that member's name; otherwise a description of it, and `preamble` is undefined.
inline const char* objection_to(std::span<const std::byte> head, std::uint64_t run, std::uint32_t from,
                                ZmqPreamble& preamble) {
  if (head.size() < sizeof(preamble) || head.size() > sizeof(preamble) + kMaxWireHeaderBytes) {
    return "a header of impossible size";
  }
  std::memcpy(&preamble, head.data(), sizeof(preamble));
  if (preamble.magic != ZmqPreamble::kMagic) return "not a message of ours";
  if (preamble.run != run) return "a message of another run";
  if (preamble.from != from) return "a message in another member's name";
  return nullptr;
}

}  // namespace syncopate
