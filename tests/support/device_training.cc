#include "tests/support/device_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "worker/step_graphs.h"

namespace syncopate::testing_support {
namespace {

constexpr double kRate = 0.125;

float gradient_of(float weight, int step, std::size_t i) {
  return weight + static_cast<float>(step) - static_cast<float>(i);
}

}  // namespace

ParamLayout small_layout() {
  ParamLayout layout;
  layout.add("first", {8, 5});
  layout.add("second", {3});
  layout.add("third", {17});
  return layout;
}

std::vector<float> initial_weights(const ParamLayout& layout) {
  std::vector<float> weights(layout.size());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7);
  return weights;
}

std::vector<float> train_on_device(SyncStrategy& strategy, ShadowDevice& device, int steps,
                                   const TrainingState* restored, bool with_graphs) {
  const ParamLayout layout = small_layout();
  const Result<ParamArenas> arenas = strategy.allocate(layout);
  EXPECT_TRUE(arenas.ok()) << arenas.status().message();
  if (!arenas.ok()) return {};
  std::vector<float> weights = initial_weights(layout);
  if (restored != nullptr) {
    const Status status = strategy.resumable()->restore(*restored);
    EXPECT_TRUE(status.ok()) << status.message();
  } else {
    device.give(device.compute(), [&] { std::ranges::copy(weights, arenas->weights.begin()); });
  }
  const Result<std::vector<Range>> buckets = strategy.join();
  EXPECT_TRUE(buckets.ok()) << buckets.status().message();
  if (!buckets.ok()) return {};

  BackwardProgress progress(layout, *buckets);
  worker::StepGraphs graphs(device);
  const float batches[3] = {};  // whose addresses graphs tell apart
  int unfinished = 0;           // steps
  const auto begun = std::make_shared<int>(static_cast<int>(strategy.first_step()) - 1);  // by the device
  const auto give = [&]() -> Status {
    device.give(device.compute(), [begun] { ++*begun; });
    progress.begin();
    for (std::size_t tensor = layout.tensors().size(); tensor-- > 0;) {
      const Range range = layout.tensors()[tensor].range;
      device.give(device.compute(), [=, arenas = *arenas] {
        for (std::size_t i = range.begin; i < range.end; ++i) {
          arenas.gradients[i] = gradient_of(arenas.weights[i], *begun, i);
        }
      });
      progress.tensor_ready(tensor, [&](std::size_t bucket) { strategy.gradient_ready(bucket); });
    }
    strategy.gradients_complete();
    return {};
  };
  for (int step = static_cast<int>(strategy.first_step()); step < steps; ++step) {
    strategy.begin_step({step, kRate});
    const worker::BatchView batch{.values = std::span(batches).subspan(static_cast<std::size_t>(step) % 3, 1)};
    const Status given = with_graphs ? graphs.launch(step, batch, give) : give();
    EXPECT_TRUE(given.ok()) << given.message();
    if (!given.ok()) return {};
    strategy.step_given();
    ++unfinished;
    const int left = strategy.runs_ahead() && step + 1 < steps ? kStepsUnderWay - 1 : 0;
    for (; unfinished > left; --unfinished) {
      const Result<SyncStats> stats = strategy.finish_step();
      EXPECT_TRUE(stats.ok()) << stats.status().message();
      if (!stats.ok()) return {};
    }
  }
  const Status left = strategy.leave();
  EXPECT_TRUE(left.ok()) << left.message();
  device.give(device.compute(), [&] { std::ranges::copy(arenas->weights, weights.begin()); });
  device.finish();
  return weights;
}

std::vector<float> train_in_plain_loops(const OptimizerConfig& optimizer, int steps,
                                        const std::function<void(std::vector<float>& gradients)>& reduce) {
  const ParamLayout layout = small_layout();
  std::vector<float> weights = initial_weights(layout), gradients(layout.size());
  OptimizerState state(optimizer, layout.size());
  for (int step = 0; step < steps; ++step) {
    for (const TensorSpec& tensor : layout.tensors()) {
      for (std::size_t i = tensor.range.begin; i < tensor.range.end; ++i) {
        gradients[i] = gradient_of(weights[i], step, i);
      }
    }
    if (reduce) reduce(gradients);
    Optimizer(optimizer, layout, {0, layout.size()})
        .apply(weights, gradients, state, 0, {static_cast<float>(kRate), 1.0f, step + 1});
  }
  return weights;
}

}  // namespace syncopate::testing_support
