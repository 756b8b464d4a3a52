#include "worker/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/worker/asked_weights.h"
#include "tests/worker/tensor_helpers.h"
#include "worker/data/image_dataset.h"
#include "worker/model.h"

namespace syncopate::worker {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr ImageShape kResnetImage{32, 32, 3};
constexpr ImageShape kSmall{9, 8, 2};
constexpr int kResnetBatch = 3;

class Resnet : public testing::Test {
 protected:
  std::unique_ptr<Model> make(ComputeBackend& backend, ImageShape image, Pass pass = Pass::kTraining) {
    auto model = make_model("resnet20", form_of_images(image, 10), kResnetBatch, backend, pass);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(*model);
  }

  Random random_{5};
  std::unique_ptr<ComputeBackend> reference_ = make_reference_backend();
  std::unique_ptr<ComputeBackend> onednn_ = make_onednn_backend();
  const Tensor images_ = random_tensor(kResnetBatch * kSmall.values(), random_);
  const std::vector<int> labels_{1, 7, 3};
};

// 0.27, 0.46 and 0.85 million: He et al. 2016, table 6.
TEST_F(Resnet, HasAsManyParametersAsInThePaper) {
  const auto count = [](const std::string& spec, ImageShape image) {
    return model_layout(spec, form_of_images(image, 10))->parameter_count();
  };
  const auto formula = [](std::size_t n, std::size_t inputs) {
    const std::size_t first = 9 * inputs * 16, stage1 = 2 * n * 9 * 16 * 16;
    const std::size_t stage2 = 9 * 16 * 32 + (2 * n - 1) * 9 * 32 * 32;
    const std::size_t stage3 = 9 * 32 * 64 + (2 * n - 1) * 9 * 64 * 64;
    const std::size_t norms = 2 * (16 + 2 * n * (16 + 32 + 64));
    return first + stage1 + stage2 + stage3 + norms + 64 * 10 + 10;
  };
  EXPECT_EQ(count("resnet20", kResnetImage), 269722u);
  EXPECT_EQ(count("resnet32", kResnetImage), 464154u);
  EXPECT_EQ(count("resnet56", kResnetImage), 853018u);
  EXPECT_EQ(count("resnet20", kResnetImage), formula(3, 3));
  EXPECT_EQ(count("resnet20", {28, 28, 1}), formula(3, 1));
  EXPECT_EQ(count("resnet56", kResnetImage), formula(9, 3));
}

// Two halvings: 32x32x16, 16x16x32 and 8x8x64. He et al. count multiply-adds, 41 million for 20 layers.
TEST_F(Resnet, CountsItsOperations) {
  const double stage =
      1024.0 * 9 * 16 * 16;  // a convolution within any stage; the first of a stage has half the inputs
  EXPECT_EQ(make(*onednn_, kResnetImage)->flops_per_sample(),
            2 * (1024.0 * 9 * 3 * 16 + 6 * stage + 5.5 * stage + 5.5 * stage + 640));
}

TEST_F(Resnet, NamesItsTensorsInForwardOrder) {
  const auto model = make(*reference_, kSmall);
  std::vector<std::string> names, local;
  for (const TensorSpec& tensor : model->layout().tensors()) names.push_back(tensor.name);
  for (const TensorSpec& tensor : model->local_layout().tensors()) local.push_back(tensor.name);
  ASSERT_EQ(names.size(), 3u * 19 + 2);
  names.resize(7);
  EXPECT_THAT(names, ElementsAre("conv1.weight", "bn1.weight", "bn1.bias", "stage1.block1.conv1.weight",
                                 "stage1.block1.bn1.weight", "stage1.block1.bn1.bias", "stage1.block1.conv2.weight"));
  ASSERT_EQ(local.size(), 2u * 19);
  local.resize(3);
  EXPECT_THAT(local, ElementsAre("bn1.running_mean", "bn1.running_var", "stage1.block1.bn1.running_mean"));
  EXPECT_EQ(model->local_layout().tensors().back().name, "stage3.block3.bn2.running_var");
}

TEST_F(Resnet, HasTheLayoutsThatAreKnownWithoutIt) {
  const auto model = make(*onednn_, kSmall);
  EXPECT_EQ(model_layout("resnet20", form_of_images(kSmall, 10))->hash(), model->layout().hash());
  EXPECT_EQ(local_state_layout("resnet20", form_of_images(kSmall, 10))->hash(), model->local_layout().hash());
  EXPECT_EQ(local_state_layout("lenet", form_of_images({28, 28, 1}, 10))->size(), 0u);
}

TEST_F(Resnet, ReportsTensorsFromTheLastToTheFirstEachWhenItIsFinal) {
  for (ComputeBackend* backend : {reference_.get(), onednn_.get()}) {
    const auto model = make(*backend, kSmall);
    Tensor weights(model->layout().size());
    model->initialize(1, weights);
    Tensor gradients = poisoned(static_cast<int>(weights.size()));
    model->forward(weights, {images_, labels_});
    std::size_t next = model->layout().tensors().size();
    model->backward(weights, gradients, [&](std::size_t tensor) {
      ASSERT_EQ(tensor, --next);
      const ConstFloats gradient = slice(ConstFloats(gradients), model->layout().tensors()[tensor].range);
      ASSERT_THAT(gradient, Each(Not(testing::IsNan()))) << model->layout().tensors()[tensor].name;
    });
    EXPECT_EQ(next, 0u);
  }
}

TEST_F(Resnet, ReadsTheWeightsThatItAsksFor) {
  const auto model = make(*onednn_, kSmall);
  Tensor weights(model->layout().size());
  model->initialize(1, weights);
  expect_reads_what_it_asks_for(*model, weights, {images_, labels_});
}

TEST_F(Resnet, GivesTheSameOnBothBackends) {
  const auto plain = make(*reference_, kSmall), fast = make(*onednn_, kSmall);
  Tensor weights(plain->layout().size());
  plain->initialize(3, weights);
  Tensor expected(weights.size()), actual(weights.size());
  for (int round = 0; round < 2; ++round) {  // the second finds activations of the first
    plain->forward(weights, {images_, labels_});
    fast->forward(weights, {images_, labels_});
    EXPECT_NEAR(fast->loss().loss, plain->loss().loss, 1e-4);
    plain->backward(weights, expected, [](std::size_t) {});
    fast->backward(weights, actual, [](std::size_t) {});
    expect_close(actual, expected, 1e-3, "gradients");
    expect_close(fast->local_state(), plain->local_state(), 1e-5, "running moments");
  }
}

// Checks the gradients behind a sum and a relu, and those in front of all layers.
TEST_F(Resnet, GradientsAreSlopesOfTheLossThroughAllLayers) {
  const auto model = make(*reference_, {8, 8, 1});
  Tensor weights(model->layout().size()), gradients(weights.size());
  model->initialize(3, weights);
  const Tensor images = random_tensor(kResnetBatch * 64, random_);
  model->forward(weights, {images, labels_});
  const double loss = model->loss().loss;
  model->backward(weights, gradients, [](std::size_t) {});
  for (const std::size_t tensor : {0, 1, 2, 4, 12, 22, 24, 40, 41, 57, 58}) {
    const TensorSpec& spec = model->layout().tensors()[tensor];
    const std::size_t i = spec.range.begin + random_.below(spec.range.size());
    const float before = weights[i];
    const auto slope_towards = [&](float step) {
      weights[i] = before + step;
      model->forward(weights, {images, labels_});
      const double change = model->loss().loss - loss;
      const double distance = static_cast<double>(weights[i]) - before;
      weights[i] = before;
      return change / distance;
    };
    // Where a relu bends on one side, the gradient is the slope of the other.
    const double error =
        std::min(std::abs(slope_towards(5e-4f) - gradients[i]), std::abs(slope_towards(-5e-4f) - gradients[i]));
    EXPECT_LE(error, 2e-3 + 0.03 * std::abs(gradients[i])) << spec.name;
  }
}

// Given the moments of a batch, evaluation comes to what training has for that batch.
TEST_F(Resnet, EvaluatesWithTheMomentsThatItIsGivenNotWithTheBatchs) {
  for (ComputeBackend* backend : {reference_.get(), onednn_.get()}) {
    const auto trained = make(*backend, kSmall), evaluated = make(*backend, kSmall, Pass::kEvaluation);
    Tensor weights(trained->layout().size());
    trained->initialize(1, weights);
    trained->forward(weights, {images_, labels_});
    const double in_training = trained->loss().loss;
    evaluated->forward(weights, {images_, labels_});
    EXPECT_GT(std::abs(evaluated->loss().loss - in_training), 0.05);

    // From what one batch has made of 0 and 1 to its own moments, with the biased variance.
    Tensor state(trained->local_state().begin(), trained->local_state().end());
    for (const TensorSpec& tensor : trained->local_layout().tensors()) {
      const bool is_variance = tensor.name.ends_with(".running_var");
      const double rows = kResnetBatch * (tensor.name.starts_with("stage3")   ? 3 * 2
                                          : tensor.name.starts_with("stage2") ? 5 * 4
                                                                              : 9 * 8);
      for (float& value : slice(std::span(state), tensor.range)) {
        const double moment = (static_cast<double>(value) - (is_variance ? 0.9 : 0)) / 0.1;
        value = static_cast<float>(is_variance ? moment * (rows - 1) / rows : moment);
      }
    }
    std::ranges::copy(state, evaluated->local_state().begin());
    for (int round = 0; round < 2; ++round) {
      evaluated->forward(weights, {images_, labels_});
      EXPECT_NEAR(evaluated->loss().loss, in_training, 2e-3);
    }
    EXPECT_THAT(evaluated->local_state(), testing::ElementsAreArray(state));
  }
}

TEST_F(Resnet, BeginsWithMomentsOfZeroAndOne) {
  const auto model = make(*onednn_, kSmall);
  for (const TensorSpec& tensor : model->local_layout().tensors()) {
    const float expected = tensor.name.ends_with(".running_var") ? 1.0f : 0.0f;
    EXPECT_THAT(slice(ConstFloats(model->local_state()), tensor.range), Each(expected)) << tensor.name;
  }
}

TEST_F(Resnet, LearnsABatchByHeart) {
  const auto model = make(*onednn_, kSmall);
  Tensor weights(model->layout().size()), gradients(weights.size());
  model->initialize(1, weights);
  double first = 0;
  for (int step = 0; step < 30; ++step) {
    model->forward(weights, {images_, labels_});
    if (step == 0) first = model->loss().loss;
    model->backward(weights, gradients, [](std::size_t) {});
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.05f * gradients[i];
  }
  EXPECT_LT(model->loss().loss, 0.2 * first);
}

TEST_F(Resnet, RefusesImagesThatAreTooSmall) {
  const auto refused = make_model("resnet20", form_of_images({7, 28, 1}, 10), 1, *reference_);
  EXPECT_EQ(refused.status().message(), "--model=resnet20: images of 7x28 are too small; a resnet needs 8x8 or more");
  EXPECT_THAT(make_model("resnet21", form_of_images(kSmall, 10), 1, *reference_).status().message(),
              HasSubstr("unknown model"));
}

}  // namespace
}  // namespace syncopate::worker
