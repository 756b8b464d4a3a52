#include "common/device/device_state.h"

#include <memory>
#include <vector>

#include "common/os/aligned_buffer.h"

namespace syncopate {
namespace {

Status wait_for_copies(Device& device, TimePoint deadline) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Event> done, device.make_event());
  device.compute().record(*done);
  return device.wait(*done, deadline);
}

}  // namespace

Status save_from_device(Device& device, std::span<const float> weights, const DeviceOptimizerState& remembered,
                        TimePoint deadline, TrainingState& state) {
  const auto copy = [&](const char* name, std::span<const float> values) {
    if (values.empty()) return;
    const std::span<float> host = state.piece(name, {0, values.size()});
    device.compute().copy_to_host(std::as_bytes(values), std::as_writable_bytes(host));
  };
  copy(state_part::kWeights, weights);
  copy(state_part::kOptimizer[0], remembered.first);
  copy(state_part::kOptimizer[1], remembered.second);
  return wait_for_copies(device, deadline).in("save: from the device");
}

Status restore_to_device(Device& device, const TrainingState& state, std::span<float> weights,
                         const DeviceOptimizerState& remembered, TimePoint deadline) {
  std::vector<AlignedBuffer> hosts;  // until the copies are done
  const auto copy = [&](const char* name, std::span<float> to) -> Status {
    if (to.empty()) return {};
    AlignedBuffer& host = hosts.emplace_back(to.size());
    SYNCOPATE_RETURN_IF_ERROR(state.read(name, {0, to.size()}, host.span()));
    device.compute().copy_to_device(std::as_bytes(host.span()), std::as_writable_bytes(to));
    return {};
  };
  Status status = copy(state_part::kWeights, weights);
  if (status.ok()) status = copy(state_part::kOptimizer[0], remembered.first);
  if (status.ok()) status = copy(state_part::kOptimizer[1], remembered.second);
  // Also where one has failed: copies that were given still read their buffers.
  const Status copied = wait_for_copies(device, deadline).in("restore: to the device");
  return status.ok() ? copied : status;
}

}  // namespace syncopate
