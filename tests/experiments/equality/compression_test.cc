// Whatever a codec loses, all workers lose the same: they stay replicas of each other, and a run can be repeated.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/run_program.h"
#include "tests/support/training_job.h"
#include "worker/data/open_dataset.h"

namespace syncopate::experiments {
namespace {

using testing_support::train_allreduce;
using testing_support::TrainingJob;

class Compression : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Of, Compression,
                         testing::Values("fp16", "bf16", "int8", "topk:0.05", "randomk:0.05", "sign", "powersgd:2"),
                         [](const auto& tested) {
                           const std::string codec = tested.param;
                           return codec.substr(0, codec.find(':'));
                         });

TEST_P(Compression, EndsWithTheSameWeightsOnAllWorkersAndInEachRun) {
  const worker::DatasetPair data =
      std::move(*worker::open_dataset("digits:1024-64", testing_support::shared_data_dir(), 1));
  TrainingJob job{.data = data.train.get(),
                  .model = "mlp:784-32-10",
                  .optimizer = {.kind = OptimizerKind::kAdam},
                  .learning_rate = 0.001,
                  .steps = testing_support::kSanitized ? 5 : 40,
                  .workers = 3,
                  .codec = *parse_codec(GetParam())};
  const std::vector<float> weights = train_allreduce(job);
  EXPECT_TRUE(train_allreduce(job) == weights);
  TrainingJob without_overlap = job;
  without_overlap.overlap = false;
  EXPECT_TRUE(train_allreduce(without_overlap) == weights);
  // Sums are made in the order of ranks in all codecs but those that leave them to an all_reduce.
  job.schedule = allreduce::ScheduleKind::kDirect;
  const bool is_summed_by_schedule = job.codec.kind == CodecKind::kRandomK || job.codec.kind == CodecKind::kPowerSgd;
  if (is_summed_by_schedule) return;
  EXPECT_TRUE(train_allreduce(job) == weights);
}

}  // namespace
}  // namespace syncopate::experiments
