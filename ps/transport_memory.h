// A transport's memory as floats.
#pragma once

#include <cstddef>
#include <span>

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

}  // namespace syncopate::ps
