#include "experiments/cluster/process/fitting_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/backend/compute_backend.h"
#include "worker/model.h"

namespace syncopate::experiments {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(TrainingMemory, IsWhatTheModelAsksForAtAnyBatch) {
  const worker::SampleForm form{.image = {16, 16, 1}, .classes = 10};
  for (const char* model : {"mlp", "lenet", "resnet20"}) {
    ResolvedRun config;
    config.model = model;
    config.optimizer = OptimizerChoice::kSgd;
    const Result<TrainingMemory> memory = training_memory(config, form);
    ASSERT_TRUE(memory.ok()) << memory.status().message();
    constexpr int kBatch = 37;
    const auto backend = worker::make_onednn_backend();
    const auto made = worker::make_model(model_spec(config), form, kBatch, *backend);
    ASSERT_TRUE(made.ok());
    const std::size_t arenas = (*made)->layout().size() * sizeof(float) * 2;
    const std::size_t batches = 2 * kBatch * (16 * 16 + 1) * sizeof(float);
    EXPECT_EQ(memory->of(kBatch), backend->allocated() + arenas + batches) << model;
  }
}

TEST(TrainingMemory, CountsTheOptimizersStateWhereItIsOnTheDevice) {
  const worker::SampleForm form{.image = {16, 16, 1}, .classes = 10};
  ResolvedRun config;
  config.device = DeviceKind::kCuda;
  config.optimizer = OptimizerChoice::kSgd;
  const std::size_t plain = training_memory(config, form)->fixed;
  config.optimizer = OptimizerChoice::kAdam;
  const std::size_t with_state = training_memory(config, form)->fixed;
  config.mode = Mode::kPs;  // servers have it
  EXPECT_EQ(training_memory(config, form)->fixed, plain);
  EXPECT_GT(with_state, plain);
}

ResolvedRun with_batch(int batch) {
  ResolvedRun config;
  config.batch_size = batch;
  return config;
}

TEST(FittingBatch, IsTheLargestForWhichThereIsRoom) {
  const TrainingMemory wanted{.fixed = 1000, .sample = 100};
  // 3200 bytes less 10 MB of libraries' and less a 32nd.
  const DeviceMemory memory{.allocated = 10'000'000 + 1200, .free = 2000};
  EXPECT_THAT(fitting_batch(wanted, with_batch(64), memory, 10'000'000), EndsWith("; --batch-size=21 fits"));
  EXPECT_THAT(fitting_batch(wanted, with_batch(22), memory, 10'000'000), EndsWith("; --batch-size=21 fits"));
}

TEST(FittingBatch, IsThatOfAllWorkersWhereThatWasGiven) {
  ResolvedRun config = with_batch(64);
  config.workers = 4;
  config.global_batch_size = 256;
  EXPECT_THAT(fitting_batch({.fixed = 1000, .sample = 100}, config, {.allocated = 1200, .free = 2000}, 0),
              EndsWith("; --global-batch-size=84 fits"));
}

TEST(FittingBatch, SaysWhereNoneFits) {
  const TrainingMemory wanted{.fixed = 1'000'000, .sample = 100};
  EXPECT_THAT(fitting_batch(wanted, with_batch(64), {.allocated = 0, .free = 1000}, 0),
              HasSubstr("a batch of 1 still "));
  EXPECT_THAT(fitting_batch(wanted, with_batch(64), {.allocated = 1000, .free = 0}, 5000),
              HasSubstr("a batch of 1 still "));
}

// Something else took the room: a convolution's workspace, say.
TEST(FittingBatch, NamesNoneThatShouldHaveFitted) {
  const TrainingMemory wanted{.fixed = 1000, .sample = 100};
  EXPECT_THAT(fitting_batch(wanted, with_batch(8), {.allocated = 10'000, .free = 0}, 0),
              EndsWith("use a smaller --batch-size"));
}

}  // namespace
}  // namespace syncopate::experiments
