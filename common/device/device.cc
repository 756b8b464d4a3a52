#include "common/device/device.h"

namespace syncopate {

Result<std::span<float>> allocate_floats(Device& device, std::size_t elements) {
  const Result<std::span<std::byte>> memory = device.allocate(elements * sizeof(float));
  if (!memory.ok()) return memory.status();
  return std::span<float>(reinterpret_cast<float*>(memory->data()), elements);
}

Result<DeviceOptimizerState> allocate_state(Device& device, OptimizerKind rule, std::size_t elements) {
  DeviceOptimizerState state;
  std::span<float>* const parts[] = {&state.first, &state.second};
  for (std::span<float>* part : std::span(parts).first(state_floats(rule))) {
    const Result<std::span<float>> memory = allocate_floats(device, elements);
    if (!memory.ok()) return memory.status();
    *part = *memory;
  }
  return state;
}

}  // namespace syncopate
