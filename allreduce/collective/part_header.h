// PartHeader: what stands before a part of a collective's buffer when it is sent.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "common/transport/transport.h"

namespace syncopate::allreduce {

// The header of a part, as its bytes lie in memory: all ranks are the same program on the same kind of machine.
struct PartHeader {
  enum Kind : std::uint32_t { kOfAll, kOfPair, kBytes };
  static constexpr std::int64_t kKinds = kBytes + 1;

  std::uint64_t operation = 0;  // its number among those of all ranks, or among those of two
  Kind kind = kOfAll;           // whose; kBytes: of all ranks, and an all_to_all
  std::uint32_t part = 0;       // its number among the parts of the operation from this sender to this receiver
  std::uint64_t begin = 0;      // elements of the buffer; bytes of what is given
  std::uint64_t end = 0;

  bool operator==(const PartHeader&) const = default;
};
static_assert(sizeof(PartHeader) == 32 && sizeof(PartHeader) <= kMaxHeaderBytes);

// "part 2 of operation 7, elements 0 to 16"
inline std::string describe(const PartHeader& header) {
  const bool is_bytes = header.kind == PartHeader::kBytes;
  return fmt::format("part {} of {}operation {}, {} {} to {}", header.part,
                     header.kind == PartHeader::kOfPair ? "pair "
                     : is_bytes                         ? "all_to_all "
                                                        : "",
                     header.operation, is_bytes ? "bytes" : "elements", header.begin, header.end);
}

}  // namespace syncopate::allreduce
