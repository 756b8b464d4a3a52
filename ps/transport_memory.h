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
#include "common/tensor_begins.h"
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

// Copies where tensors begin to memory that it can be sent from.
inline Result<std::span<std::uint64_t>> allocate_begins(Transport& transport, const TensorBegins& begins) {
  if (begins.empty()) return std::span<std::uint64_t>();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory,
                             transport.allocate(begins.size() * sizeof(std::uint64_t)));
  const std::span<std::uint64_t> sent(reinterpret_cast<std::uint64_t*>(memory.data()), begins.size());
  std::ranges::copy(begins, sent.begin());
  return sent;
}

// Reads from a payload where the tensors of an arena of `arena_size` floats begin. Fails with invalid argument unless
// it consists of ascending 64-bit numbers below `arena_size`.
inline Result<TensorBegins> begins_in(std::span<const std::byte> payload, std::uint64_t arena_size) {
  TensorBegins begins(payload.size() / sizeof(std::uint64_t));
  if (payload.size() != begins.size() * sizeof(std::uint64_t)) {
    return Status::invalid_argument(fmt::format("{} bytes are no numbers of 64 bits", payload.size()));
  }
  if (!begins.empty()) std::memcpy(begins.data(), payload.data(), payload.size());
  const bool ascend = std::ranges::adjacent_find(begins, std::greater_equal()) == begins.end();
  if (ascend && (begins.empty() || begins.back() < arena_size)) return begins;
  return Status::invalid_argument("tensors must begin in ascending order, within the arena");
}

// Reads a payload, whose size must be a multiple of four, as keys.
inline RowKeys keys_in(std::span<const std::byte> payload) {
  return {reinterpret_cast<const RowKey*>(payload.data()), payload.size() / sizeof(RowKey)};
}

}  // namespace syncopate::ps
