#include "worker/data/patterns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "tests/worker/tensor_helpers.h"
#include "worker/model.h"

namespace syncopate::worker {
namespace {

constexpr PatternSizes kFewPatterns{.train = 1000, .test = 1000, .side = 16, .classes = 5};

struct PatternSample {
  Tensor values;
  int label = -1;

  bool operator==(const PatternSample&) const = default;
};

PatternSample pattern(const Dataset& data, std::int64_t index, std::int64_t epoch = 0) {
  PatternSample sample{Tensor(static_cast<std::size_t>(data.form().values()))};
  data.read(index, epoch, {sample.values, {}, {&sample.label, 1}});
  return sample;
}

TEST(Patterns, FollowFromSeedAndIndexAlone) {
  const auto data = make_patterns_train(1, kFewPatterns), test = make_patterns_test(1, kFewPatterns);
  const PatternSample sample = pattern(*data, 4);
  EXPECT_EQ(sample, pattern(*data, 4, 3));
  EXPECT_EQ(sample, pattern(*make_patterns_train(1, {.train = 5, .test = 1, .side = 16, .classes = 5}), 4));
  EXPECT_NE(sample.values, pattern(*data, 5).values);
  EXPECT_NE(sample.values, pattern(*make_patterns_train(2, kFewPatterns), 4).values);
  EXPECT_NE(sample.values, pattern(*test, 4).values);
}

TEST(Patterns, HaveEachClassAboutAsOftenWithLabelsThatAreKnownWithoutReading) {
  const auto data = make_patterns_train(1, kFewPatterns);
  std::vector<int> often(5);
  for (int index = 0; index < 1000; ++index) {
    const int label = pattern(*data, index).label;
    EXPECT_EQ(data->fixed_label(index), label);
    ++often.at(static_cast<std::size_t>(label));
  }
  for (const int times : often) EXPECT_NEAR(times, 200, 60);  // more than four deviations
}

TEST(Patterns, AreAboutAsLargeAsNormalisedPhotographs) {
  const auto data = make_patterns_train(1, {.side = 32, .classes = 100});
  double sum = 0, squares = 0;
  for (int index = 0; index < 200; ++index) {
    for (const float value : pattern(*data, index).values) sum += value, squares += value * value;
  }
  const double count = 200.0 * 32 * 32 * 3, mean = sum / count;
  EXPECT_NEAR(mean, 0, 0.1);
  EXPECT_NEAR(std::sqrt(squares / count - mean * mean), 1, 0.3);
}

// A convolution learns to tell the classes of samples apart that it has not seen; what it does not learn is their
// pixels.
TEST(Patterns, TellTheirClassesToAConvolutionalModel) {
  constexpr int kBatch = 32, kSteps = 60;
  const auto data = make_patterns_train(1, kFewPatterns), test = make_patterns_test(1, kFewPatterns);
  const std::unique_ptr<ComputeBackend> backend = make_onednn_backend();
  const auto model = std::move(*make_model("resnet20", data->form(), kBatch, *backend));
  Tensor weights(model->layout().size()), gradients(weights.size());
  model->initialize(1, weights);
  Tensor images;  // backward reads them once more
  std::vector<int> labels;
  const auto forward_on = [&](const Dataset& set, int first) {
    images.clear(), labels.clear();
    for (int i = 0; i < kBatch; ++i) {
      const PatternSample sample = pattern(set, (first + i) % set.size());
      images.insert(images.end(), sample.values.begin(), sample.values.end());
      labels.push_back(sample.label);
    }
    model->forward(weights, {images, labels});
    return model->loss();
  };
  for (int step = 0; step < kSteps; ++step) {
    forward_on(*data, step * kBatch);
    model->backward(weights, gradients, [](std::size_t) {});
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.1f * gradients[i];
  }
  EXPECT_GT(forward_on(*test, 0).correct, kBatch * 3 / 4);
}

}  // namespace
}  // namespace syncopate::worker
