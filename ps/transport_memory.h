// A transport's memory and payloads as floats and as keys.
#pragma once

#include <cstddef>
#include <span>

#include "common/param_layout.h"
#include "common/status.h"
#include "common/transport/transport.h"

namespace syncopate::ps {

// Zeroed floats that payloads can be sent from; they live as long as `transport`. Fails with resource exhausted.
inline Result<std::span<float>> allocate_floats(Transport& transport, std::size_t elements) {
  if (elements == 0) return std::span<float>();
  Result<std::span<std::byte>> memory = transport.allocate(elements * sizeof(float));
  if (!memory.ok()) return memory.status();
  return std::span<float>(reinterpret_cast<float*>(memory->data()), elements);
}

// The same for the keys of rows.
inline Result<std::span<RowKey>> allocate_keys(Transport& transport, std::size_t count) {
  Result<std::span<std::byte>> memory = transport.allocate(count * sizeof(RowKey));
  if (!memory.ok()) return memory.status();
  return std::span<RowKey>(reinterpret_cast<RowKey*>(memory->data()), count);
}

// A payload, whose size must be a multiple of four, as keys.
inline RowKeys keys_in(std::span<const std::byte> payload) {
  return {reinterpret_cast<const RowKey*>(payload.data()), payload.size() / sizeof(RowKey)};
}

}  // namespace syncopate::ps
