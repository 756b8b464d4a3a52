// The data on a socket: a Hello and a proof from each end, then frames, encrypted or not. A frame is a FrameHead, the
// message's header, and its payload. Numbers are in the byte order of the machine, which is the same on all hosts of a
// run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/transport/transport.h"

namespace syncopate {

struct Hello {
  static constexpr std::uint32_t kMagic = 0x534E5953;  // "SYNS"
  static constexpr std::uint32_t kVersion = 2;

  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint64_t run = 0;   // hash of run and group
  std::uint32_t from = 0;  // ranks
  std::uint32_t to = 0;
  // The faster SocketCipher::Kind that the sender supports; a connection uses the slower one of both ends.
  std::uint32_t cipher = 0;
  std::uint32_t encrypts = 0;           // 1 if the data after the proofs is sealed, as they are
  std::array<unsigned char, 32> key{};  // a fresh public key
};

// Sealed data is sent in records: the length of the sealed bytes, then these bytes. The first record of each end is
// empty: it proves that the sender has the run's keys, and that both ends have received the same bytes.
struct RecordHead {
  std::uint32_t sealed_bytes = 0;  // 16 more than the plain bytes
};
inline constexpr std::size_t kMostInRecord = 64 * 1024;

struct FrameHead {
  // A goodbye is the last frame of an end that closes the connection in order, and is only the head. With it the other
  // end can tell that from a loss.
  enum class Kind : std::uint32_t { kMessage = 0, kGoodbye = 1 };

  Kind kind = Kind::kMessage;
  std::uint32_t header_bytes = 0;  // at most kMaxWireHeaderBytes
  std::uint64_t payload_bytes = 0;
};

}  // namespace syncopate
