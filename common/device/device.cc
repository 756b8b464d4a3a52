#include "common/device/device.h"

#include "common/optimizer/decay_parts.h"

namespace syncopate {

Result<std::span<float>> allocate_floats(Device& device, std::size_t elements) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, device.allocate(elements * sizeof(float)));
  return std::span<float>(reinterpret_cast<float*>(memory.data()), elements);
}

Result<DeviceOptimizerState> allocate_state(Device& device, OptimizerKind rule, std::size_t elements) {
  DeviceOptimizerState state;
  std::span<float>* const parts[] = {&state.first, &state.second};
  for (std::span<float>* part : std::span(parts).first(state_floats(rule))) {
    SYNCOPATE_ASSIGN_OR_RETURN(*part, allocate_floats(device, elements));
  }
  return state;
}

void update_range(Stream& stream, const OptimizerConfig& rule, std::span<const Range> undecayed, Range range,
                  std::span<float> weights, std::span<const float> gradients, const DeviceOptimizerState& state,
                  const UpdateStep& step) {
  OptimizerConfig without_decay = rule;
  without_decay.weight_decay = 0;
  for_each_decay_part(undecayed, range, [&](Range part, bool decays) {
    const auto of = [part](std::span<float> memory) { return memory.empty() ? memory : slice(memory, part); };
    stream.update(decays ? rule : without_decay, slice(weights, part), slice(gradients, part),
                  {of(state.first), of(state.second)}, step);
  });
}

}  // namespace syncopate
