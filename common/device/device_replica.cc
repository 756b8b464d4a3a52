#include "common/device/device_replica.h"

#include <cassert>
#include <cstring>
#include <memory>

#include "common/optimizer/decay_parts.h"
#include "common/optimizer/update_constants.h"
#include "common/os/aligned_buffer.h"

namespace syncopate {
namespace {

using update_rule::constants_of;
using update_rule::UpdateConstants;

OptimizerConfig without_decay(OptimizerConfig rule) {
  rule.weight_decay = 0;
  return rule;
}

Status wait_for_copies(Device& device, TimePoint deadline) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Event> done, device.make_event());
  device.compute().record(*done);
  return device.wait(*done, deadline);
}

}  // namespace

Result<ParamArenas> DeviceReplica::allocate(const ParamLayout& layout) {
  assert(layout.tables().empty());
  for (std::span<float>* arena : {&arenas_.weights, &arenas_.gradients}) {
    SYNCOPATE_ASSIGN_OR_RETURN(*arena, allocate_floats(device_, layout.size()));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(state_, allocate_state(device_, optimizer_.kind, layout.size()));
  if (optimizer_.weight_decay != 0 && !optimizer_.decay_all) undecayed_ = undecayed_ranges(layout);
  for (Constants& constants : constants_) {
    SYNCOPATE_ASSIGN_OR_RETURN(constants.host, device_.allocate_pinned(2 * sizeof(UpdateConstants)));
    SYNCOPATE_ASSIGN_OR_RETURN(constants.device, device_.allocate(2 * sizeof(UpdateConstants)));
  }
  return arenas_;
}

Status DeviceReplica::save(TrainingState& state, TimePoint deadline) const {
  state.step = step_ < 0 ? first_step_ : step_ + 1;
  const auto copy = [&](const char* name, std::span<const float> values) {
    if (values.empty()) return;
    const std::span<float> host = state.piece(name, {0, values.size()});
    device_.compute().copy_to_host(std::as_bytes(values), std::as_writable_bytes(host));
  };
  copy(state_part::kWeights, arenas_.weights);
  copy(state_part::kOptimizer[0], state_.first);
  copy(state_part::kOptimizer[1], state_.second);
  return wait_for_copies(device_, deadline).in("save: from the device");
}

Status DeviceReplica::restore(const TrainingState& state, TimePoint deadline) {
  first_step_ = state.step;
  std::vector<AlignedBuffer> hosts;  // until the copies are done
  const auto copy = [&](const char* name, std::span<float> to) -> Status {
    if (to.empty()) return {};
    AlignedBuffer& host = hosts.emplace_back(to.size());
    SYNCOPATE_RETURN_IF_ERROR(state.read(name, {0, to.size()}, host.span()));
    device_.compute().copy_to_device(std::as_bytes(host.span()), std::as_writable_bytes(to));
    return {};
  };
  Status status = copy(state_part::kWeights, arenas_.weights);
  if (status.ok()) status = copy(state_part::kOptimizer[0], state_.first);
  if (status.ok()) status = copy(state_part::kOptimizer[1], state_.second);
  // Also where one has failed: copies that were given still read their buffers.
  const Status copied = wait_for_copies(device_, deadline).in("restore: to the device");
  return status.ok() ? copied : status;
}

void DeviceReplica::begin_step(const StepContext& step) {
  step_ = step.step;
  const UpdateStep update{step.learning_rate, 1.0f, step.step + 1};
  const UpdateConstants both[] = {constants_of(optimizer_, update), constants_of(without_decay(optimizer_), update)};
  std::memcpy(constants_[turn_of(step_)].host.data(), both, sizeof(both));
}

void DeviceReplica::begin_updates() {
  const Constants& constants = constants_[turn_of(step_)];
  device_.compute().copy_to_device(constants.host, constants.device);
}

void DeviceReplica::update(Range range) {
  const auto* const constants = reinterpret_cast<const UpdateConstants*>(constants_[turn_of(step_)].device.data());
  for_each_decay_part(undecayed_, range, [&](Range part, bool decays) {
    const auto of = [part](std::span<float> memory) { return memory.empty() ? memory : slice(memory, part); };
    device_.compute().update(optimizer_, slice(arenas_.weights, part), slice(arenas_.gradients, part),
                             {of(state_.first), of(state_.second)}, decays ? constants : constants + 1);
  });
}

}  // namespace syncopate
