#include "common/device/device.h"

namespace syncopate {

Result<std::span<float>> allocate_floats(Device& device, std::size_t elements) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, device.allocate(elements * sizeof(float)));
  return std::span<float>(reinterpret_cast<float*>(memory.data()), elements);
}

Result<DeviceOptimizerState> allocate_state(Device& device, const OptimizerConfig& rule, std::size_t elements) {
  DeviceOptimizerState state;
  for (std::span<float>& memory : std::span(state.memories).first(state_floats(rule))) {
    SYNCOPATE_ASSIGN_OR_RETURN(memory, allocate_floats(device, elements));
  }
  return state;
}

}  // namespace syncopate
