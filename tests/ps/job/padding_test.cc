// Jobs with small tensors, step by step, against plain arithmetic: no codec counts the padding behind them, in either
// direction.
#include <gtest/gtest.h>

#include "tests/ps/job/codec_names.h"
#include "tests/ps/job/ps_job.h"
#include "tests/support/plain_codec.h"

namespace syncopate::ps {
namespace {

using testing_support::is_padding;
using testing_support::kSmallTensorsElements;
using testing_support::layout_of_small_tensors;
using testing_support::PlainSender;

constexpr int kPaddedSteps = 4;
constexpr float kLearningRate = 0.5f;

void fill_gradients(int rank, int step, std::span<float> gradients) {
  const ParamLayout layout = layout_of_small_tensors();
  Random random(static_cast<std::uint64_t>(rank) + 1, static_cast<std::uint64_t>(step));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    gradients[i] = is_padding(layout, i) ? 0.0f : static_cast<float>(random.normal());
  }
}

using History = std::vector<std::vector<float>>;  // a worker's weights, by step

History train_small_tensors(const PsJobOptions& options) {
  PsJob job(options);
  std::vector<History> histories(static_cast<std::size_t>(options.group.workers));
  job.run([&](int rank, PsStrategy& strategy) {
    const ParamArenas arenas = *strategy.allocate(layout_of_small_tensors());
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    ASSERT_EQ(buckets->size(), 1u);
    for (int i = 0; i < kPaddedSteps; ++i) {
      fill_gradients(rank, i, arenas.gradients);
      ASSERT_TRUE(step(strategy, i, buckets->size(), kLearningRate).ok());
      histories[static_cast<std::size_t>(rank)].emplace_back(arenas.weights.begin(), arenas.weights.end());
    }
    EXPECT_TRUE(strategy.leave().ok());
  });
  for (const History& history : histories) EXPECT_EQ(history, histories[0]);
  return histories[0];
}

// The servers' weights move by the mean of what arrives; what a worker has moves by what arrives of the difference.
History plainly_trained(const PsJobOptions& options) {
  const ParamLayout layout = layout_of_small_tensors();
  const CodecConfig& codec = options.compression.codec;
  const Range all{0, layout.size()};
  const auto workers = static_cast<std::size_t>(options.group.workers);
  std::vector<PlainSender> senders(workers, {codec, layout});
  std::vector<float> weights(layout.size()), had(layout.size()), gradients(layout.size());
  History history;
  for (int step = 0; step < kPaddedSteps; ++step) {
    for (std::size_t worker = 0; worker < workers; ++worker) {
      fill_gradients(static_cast<int>(worker), step, gradients);
      const std::vector<float> sent = senders[worker].send(all, gradients);
      for (std::size_t i = 0; i < sent.size(); ++i) weights[i] -= kLearningRate * sent[i] / static_cast<float>(workers);
    }
    std::vector<float> difference(weights);
    for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= had[i];
    if (options.compression.answers) difference = testing_support::plainly_sent(codec, layout, all, difference);
    for (std::size_t i = 0; i < difference.size(); ++i) had[i] += difference[i];
    history.push_back(had);
  }
  return history;
}

class PaddingInJobs : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Codec, PaddingInJobs, all_codecs(), letters_of);

TEST_P(PaddingInJobs, ChangesNoWeight) {
  const ParamLayout layout = layout_of_small_tensors();
  std::string codec = GetParam();
  if (codec.ends_with(":0.1")) codec.replace(codec.find(':'), 4, ":0.25");
  // All workers have the same weights in each step under sync; under async one worker alone knows what it will have.
  for (const auto& [consistency, workers] : {std::pair{"sync", 2}, {"async", 1}}) {
    for (const bool answers : {true, false}) {
      const PsJobOptions options{.group = {.workers = workers, .servers = 1},
                                 .consistency = consistency,
                                 .compression = compression_of(codec, answers)};
      const History history = train_small_tensors(options);
      const bool is_drawn = options.compression.codec.kind == CodecKind::kRandomK;
      const History expected =
          is_drawn ? History(kPaddedSteps, std::vector<float>(layout.size())) : plainly_trained(options);
      std::vector<float> before(layout.size());
      for (int step = 0; step < kPaddedSteps; ++step) {
        const std::vector<float>& weights = history[static_cast<std::size_t>(step)];
        std::size_t moved = 0;
        for (std::size_t i = 0; i < weights.size(); ++i) {
          moved += weights[i] != before[i] ? 1 : 0;
          if (is_padding(layout, i)) EXPECT_EQ(weights[i], 0) << consistency << " " << answers << " " << i;
          if (is_drawn) continue;
          EXPECT_NEAR(weights[i], expected[static_cast<std::size_t>(step)][i], 1e-5)
              << consistency << " " << answers << " step " << step << " " << i;
        }
        if (is_drawn && !answers && workers == 1) EXPECT_EQ(moved, (kSmallTensorsElements + 3) / 4) << step;
        before = weights;
      }
    }
  }
}

}  // namespace
}  // namespace syncopate::ps
