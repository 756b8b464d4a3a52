// A replica whose weights and optimizer lie on a device, as a TrainingState: taken there, and put back.
#pragma once

#include <span>

#include "common/clock.h"
#include "common/device/device.h"
#include "common/status.h"
#include "common/training_state.h"

namespace syncopate {

// Both give copies to the device's compute stream and wait for them until `deadline`. `weights` is the whole arena.
Status save_from_device(Device& device, std::span<const float> weights, const DeviceOptimizerState& remembered,
                        TimePoint deadline, TrainingState& state);
// Data loss where something is missing.
Status restore_to_device(Device& device, const TrainingState& state, std::span<float> weights,
                         const DeviceOptimizerState& remembered, TimePoint deadline);

}  // namespace syncopate
