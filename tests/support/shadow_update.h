// The update rule on the shadow device's memory: what a real device's kernel does, with the same rounding.
#pragma once

#include <span>

#include "common/device/device.h"
#include "common/optimizer/optimizer.h"

namespace syncopate::testing_support {

// As Stream::update, done on return.
void shadow_update(const OptimizerConfig& rule, std::span<float> weights, std::span<const float> gradient,
                   const DeviceOptimizerState& state, const update_rule::UpdateConstants& constants);

}  // namespace syncopate::testing_support
