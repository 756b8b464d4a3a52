// A transport's memory and payloads as floats and as keys.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>

#include "common/param_layout.h"
#include "common/status.h"
#include "common/tensor_ranges.h"
#include "common/transport/transport.h"

namespace syncopate::ps {

// Returns zeroed floats that payloads can be sent from; they live as long as `transport`. Fails with resource
// exhausted.
inline Result<std::span<float>> allocate_floats(Transport& transport, std::size_t elements) {
  if (elements == 0) return std::span<float>();
  SYNCOPATE_ASSIGN_OR_RETURN(std::span<std::byte> memory, transport.allocate(elements * sizeof(float)));
  return std::span<float>(reinterpret_cast<float*>(memory.data()), elements);
}

// The same for the keys of rows.
inline Result<std::span<RowKey>> allocate_keys(Transport& transport, std::size_t count) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::span<std::byte> memory, transport.allocate(count * sizeof(RowKey)));
  return std::span<RowKey>(reinterpret_cast<RowKey*>(memory.data()), count);
}

// Copies where tensors lie to memory that it can be sent from.
inline Result<std::span<Range>> allocate_ranges(Transport& transport, const TensorRanges& tensors) {
  if (tensors.empty()) return std::span<Range>();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, transport.allocate(tensors.size() * sizeof(Range)));
  const std::span<Range> sent(reinterpret_cast<Range*>(memory.data()), tensors.size());
  std::ranges::copy(tensors, sent.begin());
  return sent;
}

// Reads from a payload where the tensors of an arena of `arena_size` floats lie: the begin and the end of each, 64 bits
// each. Fails with invalid argument unless none is empty, each lies behind the last one, and all within the arena.
inline Result<TensorRanges> ranges_in(std::span<const std::byte> payload, std::uint64_t arena_size) {
  static_assert(sizeof(Range) == 2 * sizeof(std::uint64_t));
  TensorRanges tensors(payload.size() / sizeof(Range));
  if (payload.size() != tensors.size() * sizeof(Range)) {
    return Status::invalid_argument(fmt::format("{} bytes are no pairs of numbers of 64 bits", payload.size()));
  }
  if (!tensors.empty()) std::memcpy(tensors.data(), payload.data(), payload.size());
  std::size_t end = 0;
  for (const Range& tensor : tensors) {
    if (tensor.begin < end || tensor.end <= tensor.begin || tensor.end > arena_size) {
      return Status::invalid_argument("tensors must lie one behind the other, within the arena");
    }
    end = tensor.end;
  }
  return tensors;
}

// Reads a payload, whose size must be a multiple of four, as keys.
inline RowKeys keys_in(std::span<const std::byte> payload) {
  return {reinterpret_cast<const RowKey*>(payload.data()), payload.size() / sizeof(RowKey)};
}

}  // namespace syncopate::ps
