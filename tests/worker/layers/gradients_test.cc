// Every layer's gradients against central finite differences, on the plain loops.
#include <gtest/gtest.h>

#include "tests/worker/layers/layer_under_test.h"
#include "worker/layers/activation.h"
#include "worker/layers/batch_norm.h"
#include "worker/layers/bias.h"
#include "worker/layers/conv2d.h"
#include "worker/layers/dense.h"
#include "worker/layers/flatten.h"
#include "worker/layers/pool.h"
#include "worker/layers/subsample.h"

namespace syncopate::worker {
namespace {

class Gradients : public LayerTest {};

TEST_F(Gradients, OfDenseAreSlopesAndReportedBiasFirst) {
  Dense dense(*backend_, {kBatch, 7, 5}, "dense", Initialization::kHeUniform, layout_);
  LayerUnderTest test(dense, random_arena(layout_), random_tensor(kBatch * 7, random_), random_);
  test.expect_gradients_are_slopes(0.1);
  EXPECT_EQ(test.reported(), (std::vector<std::size_t>{1, 0}));
}

TEST_F(Gradients, OfDenseUnderReluAreSlopes) {
  Dense dense(*backend_, {kBatch, 7, 5, true}, "dense", Initialization::kHeUniform, layout_);
  LayerUnderTest test(dense, random_arena(layout_), random_tensor(kBatch * 7, random_), random_);
  test.expect_gradients_are_slopes(1e-3);
}

TEST_F(Gradients, OfConv2dAreSlopesAndReportedBiasFirst) {
  Conv2d conv(*backend_, {kBatch, 6, 5, 2, 3, 3}, "conv", Initialization::kHeUniform, layout_);
  LayerUnderTest test(conv, random_arena(layout_), random_tensor(kBatch * 6 * 5 * 2, random_), random_);
  test.expect_gradients_are_slopes(0.1);
  EXPECT_EQ(test.reported(), (std::vector<std::size_t>{1, 0}));
}

TEST_F(Gradients, OfAPaddedConv2dWithStrideAndWithoutBiasAreSlopes) {
  Conv2d conv(*backend_, {kBatch, 5, 6, 2, 3, 3, 2, 1, false}, "conv", Initialization::kHeUniform, layout_);
  LayerUnderTest test(conv, random_arena(layout_), random_tensor(kBatch * 5 * 6 * 2, random_), random_);
  test.expect_gradients_are_slopes(0.1);
  EXPECT_EQ(test.reported(), (std::vector<std::size_t>{0}));
}

TEST_F(Gradients, OfBatchNormAreSlopesAndReportedShiftFirst) {
  for (const bool relu : {false, true}) {
    ParamLayout layout, local_layout;
    BatchNorm norm(*backend_, {kBatch * 4, 5, relu}, 4, Pass::kTraining, "bn", layout, local_layout);
    Tensor state(local_layout.size());
    norm.use_local_state(state);
    LayerUnderTest test(norm, random_arena(layout), random_tensor(kBatch * 4 * 5, random_), random_);
    test.expect_gradients_are_slopes(1e-3, 2e-3);
    EXPECT_EQ(test.reported(), (std::vector<std::size_t>{1, 0}));
  }
}

TEST_F(Gradients, OfMeanPoolAreSlopes) {
  MeanPool pool(*backend_, {kBatch, 6, 5});
  LayerUnderTest(pool, {}, random_tensor(kBatch * 6 * 5, random_), random_).expect_gradients_are_slopes(0.1);
}

TEST_F(Gradients, OfSubsampleAreSlopes) {
  Subsample subsample(*backend_, {kBatch, 5, 4, 2, 3, 2});
  LayerUnderTest(subsample, {}, random_tensor(kBatch * 5 * 4 * 2, random_), random_).expect_gradients_are_slopes(0.1);
}

TEST_F(Gradients, OfReluAreSlopes) {
  Relu relu(*backend_, 20);
  LayerUnderTest(relu, {}, distinct_tensor(kBatch * 20), random_).expect_gradients_are_slopes(0.01);
}

TEST_F(Gradients, OfBiasAndReluAreSlopes) {
  BiasAndRelu bias(*backend_, {kBatch * 4, 5, true}, 4, "conv1", layout_);
  Tensor weights(layout_.size());
  for (int i = 0; i < 5; ++i) weights[i] = 0.05f * static_cast<float>(i + 1);
  LayerUnderTest(bias, weights, distinct_tensor(kBatch * 20), random_).expect_gradients_are_slopes(0.01);
}

TEST_F(Gradients, OfMaxPoolAreSlopes) {
  for (const PoolShape& shape : {PoolShape{kBatch, 5, 4, 3, 2, 2}, PoolShape{kBatch, 5, 4, 3, 3, 2, 1}}) {
    MaxPool pool(*backend_, shape);
    LayerUnderTest(pool, {}, distinct_tensor(kBatch * 5 * 4 * 3), random_).expect_gradients_are_slopes(0.01);
  }
}

TEST_F(Gradients, OfFlattenAreSlopes) {
  Flatten flatten(12);
  LayerUnderTest(flatten, {}, random_tensor(kBatch * 12, random_), random_).expect_gradients_are_slopes(0.1);
}

TEST_F(Gradients, OfSoftmaxCrossEntropyAreSlopesOfTheMeanLoss) {
  Tensor logits = random_tensor(kBatch * 5, random_), gradient = poisoned(kBatch * 5), unused = gradient;
  const std::vector<int> labels{4, 0, 2};
  backend_->softmax_cross_entropy(kBatch, 5, logits, labels, 1, gradient);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float before = logits[i];
    const auto loss_at = [&](float value) {
      logits[i] = value;
      backend_->softmax_cross_entropy(kBatch, 5, logits, labels, 1, unused);
      return backend_->loss().loss;
    };
    const double slope = (loss_at(before + 0.0078125f) - loss_at(before - 0.0078125f)) / 0.015625;
    logits[i] = before;
    EXPECT_NEAR(gradient[i], slope, 1e-5);
  }
}

TEST_F(Gradients, OfAnInputThatNobodyNeedsAreNotComputed) {
  Dense dense(*backend_, {kBatch, 7, 5}, "dense", Initialization::kHeUniform, layout_);
  const Tensor weights = random_arena(layout_), input = random_tensor(kBatch * 7, random_);
  Tensor output = poisoned(kBatch * 5), gradient = random_tensor(kBatch * 5, random_);
  Tensor with = poisoned(static_cast<int>(layout_.size())), without = with, input_gradient = poisoned(kBatch * 7);
  const auto ignore = [](std::size_t) {};
  dense.backward(weights, {input, output}, {gradient, input_gradient}, with, ignore);
  dense.backward(weights, {input, output}, {gradient, {}}, without, ignore);
  expect_close(Floats(without).first(35), Floats(with).first(35), 0, "weight gradient");
}

}  // namespace
}  // namespace syncopate::worker
