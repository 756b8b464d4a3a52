// Training on a ShadowDevice with a model that is one line, so that its course is exactly known: the gradient of weight
// i in step s is weight[i] + s - i.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/sync_strategy.h"
#include "tests/support/shadow_device.h"

namespace syncopate::testing_support {

// Tensors of 8 by 5, 3 and 17 elements: the first alone decays.
ParamLayout small_layout();
std::vector<float> initial_weights(const ParamLayout& layout);

// Trains up to step `steps`, which the strategy must come through, from `restored` on if that is given, and returns the
// device's weights after leave(). `with_graphs`: as a trainer would that captures steps.
std::vector<float> train_on_device(SyncStrategy& strategy, ShadowDevice& device, int steps,
                                   const TrainingState* restored = nullptr, bool with_graphs = false);
// The same in plain loops: `reduce`, unless null, changes a step's gradients before the update.
std::vector<float> train_in_plain_loops(const OptimizerConfig& optimizer, int steps,
                                        const std::function<void(std::vector<float>& gradients)>& reduce = nullptr);

}  // namespace syncopate::testing_support
