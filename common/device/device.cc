#include "common/device/device.h"

#include "common/update_rule.h"

namespace syncopate {

Result<std::span<float>> allocate_floats(Device& device, std::size_t elements) {
  const Result<std::span<std::byte>> memory = device.allocate(elements * sizeof(float));
  if (!memory.ok()) return memory.status();
  return std::span<float>(reinterpret_cast<float*>(memory->data()), elements);
}

Result<DeviceOptimizerState> allocate_state(Device& device, OptimizerKind rule, std::size_t elements) {
  DeviceOptimizerState state;
  for (std::span<float>* part : {&state.first, &state.second}) {
    if (rule == OptimizerKind::kSgd || (part == &state.second && !update_rule::is_adam(rule))) break;
    const Result<std::span<float>> memory = allocate_floats(device, elements);
    if (!memory.ok()) return memory.status();
    *part = *memory;
  }
  return state;
}

}  // namespace syncopate
