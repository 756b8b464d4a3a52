// Saves a replica whose weights and optimizer state lie on a device to a TrainingState, and restores it.
#pragma once

#include <span>

#include "common/clock.h"
#include "common/device/device.h"
#include "common/status.h"
#include "common/training_state.h"

namespace syncopate {

// Both enqueue copies on the device's compute stream and wait for them until `deadline`. `weights` is the whole arena.
Status save_from_device(Device& device, std::span<const float> weights, const DeviceOptimizerState& remembered,
                        TimePoint deadline, TrainingState& state);
// Fails with data loss if something is missing.
Status restore_to_device(Device& device, const TrainingState& state, std::span<float> weights,
                         const DeviceOptimizerState& remembered, TimePoint deadline);

}  // namespace syncopate
