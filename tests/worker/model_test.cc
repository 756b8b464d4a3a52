#include "worker/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/asked_weights.h"
#include "tests/worker/tensor_helpers.h"
#include "worker/data/image_dataset.h"

namespace syncopate::worker {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr ImageShape kDigit{28, 28, 1};
constexpr ImageShape kColour{32, 32, 3};

std::unique_ptr<Model> must_make(const std::string& spec, ImageShape image, int batch, ComputeBackend& backend) {
  auto model = make_model(spec, form_of_images(image, 10), batch, backend);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(*model);
}

struct TrainedPass {
  LossAndCorrect result;
  Tensor gradients;
  std::vector<std::size_t> reported;
};

// Forward and backward on random images, with gradients that begin as NaN except for the padding.
TrainedPass run_pass(Model& model, const Tensor& weights, const BatchView& batch) {
  TrainedPass pass;
  pass.gradients.assign(weights.size(), 0.0f);
  for (const TensorSpec& tensor : model.layout().tensors()) {
    std::ranges::fill(slice(std::span<float>(pass.gradients), tensor.range), std::nanf(""));
  }
  model.forward(weights, batch);
  pass.result = model.loss();
  model.backward(weights, pass.gradients, [&](std::size_t tensor) {
    pass.reported.push_back(tensor);
    const ConstFloats gradient = slice(ConstFloats(pass.gradients), model.layout().tensors()[tensor].range);
    for (float value : gradient) ASSERT_FALSE(std::isnan(value)) << "tensor " << tensor << " is not final";
  });
  return pass;
}

class ModelTest : public testing::Test {
 protected:
  Tensor initial_weights(const Model& model, std::uint64_t seed = 3) {
    Tensor weights(model.layout().size());
    model.initialize(seed, weights);
    return weights;
  }

  Random random_{5};
  std::unique_ptr<ComputeBackend> reference_ = make_reference_backend();
  std::unique_ptr<ComputeBackend> onednn_ = make_onednn_backend();
};

TEST_F(ModelTest, HasAsManyParametersAsItsFormulaSays) {
  const auto count = [&](const std::string& spec, ImageShape image) {
    return must_make(spec, image, 1, *reference_)->layout().parameter_count();
  };
  EXPECT_EQ(count("softmax", kDigit), 7850u);
  EXPECT_EQ(count("mlp", kDigit), 269322u);
  EXPECT_EQ(count("mlp:784-30-10", kDigit), 784u * 30 + 30 + 30 * 10 + 10);
  EXPECT_EQ(count("lenet", kDigit), 832u + 51264 + 524800 + 5130);
  EXPECT_EQ(count("lenet", kColour), 32u * 76 + 51264 + (5 * 5 * 64 + 1) * 512 + 5130);
}

TEST_F(ModelTest, NamesItsTensorsInForwardOrder) {
  std::vector<std::string> names;
  const auto model = must_make("lenet", kDigit, 1, *reference_);
  for (const TensorSpec& tensor : model->layout().tensors()) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "dense1.weight",
                                 "dense1.bias", "dense2.weight", "dense2.bias"));
  EXPECT_THAT(model->layout().tensors()[2].shape, ElementsAre(64, 5, 5, 32));
}

TEST_F(ModelTest, HasTheLayoutThatIsKnownWithoutIt) {
  for (const auto& [spec, image] :
       {std::pair("softmax", kDigit), {"mlp", kColour}, {"lenet", kDigit}, {"lenet", kColour}}) {
    const Result<ParamLayout> layout = model_layout(spec, form_of_images(image, 10));
    ASSERT_TRUE(layout.ok()) << layout.status().message();
    EXPECT_EQ(layout->hash(), must_make(spec, image, 3, *onednn_)->layout().hash());
  }
  EXPECT_EQ(model_layout("resnet", form_of_images(kDigit, 10)).status().message(),
            make_model("resnet", form_of_images(kDigit, 10), 1, *reference_).status().message());
}

TEST_F(ModelTest, CountsItsOperations) {
  EXPECT_EQ(must_make("mlp", kDigit, 8, *reference_)->flops_per_sample(), 2.0 * (784 * 256 + 256 * 256 + 2560));
  EXPECT_EQ(must_make("lenet", kDigit, 8, *reference_)->flops_per_sample(),
            2.0 * (576 * 32 * 25 + 64 * 64 * 800 + 1024 * 512 + 5120));
}

TEST_F(ModelTest, ReportsTensorsFromTheLastToTheFirstEachWhenItIsFinal) {
  for (ComputeBackend* backend : {reference_.get(), onednn_.get()}) {
    const auto model = must_make("lenet", {16, 16, 1}, 2, *backend);
    const Tensor images = random_tensor(2 * 256, random_);
    const std::vector<int> labels = random_labels(2, 10, random_);
    const TrainedPass pass = run_pass(*model, initial_weights(*model), {images, labels});
    EXPECT_THAT(pass.reported, ElementsAre(7, 6, 5, 4, 3, 2, 1, 0));
  }
}

TEST_F(ModelTest, ReadsTheWeightsThatItAsksFor) {
  for (const char* spec : {"softmax", "mlp", "lenet"}) {
    const auto model = must_make(spec, kDigit, 4, *onednn_);
    const Tensor images = random_tensor(4 * 28 * 28, random_);
    const std::vector<int> labels{1, 2, 3, 4};
    expect_reads_what_it_asks_for(*model, initial_weights(*model), {images, labels});
  }
}

TEST_F(ModelTest, GivesTheSameOnBothBackends) {
  const std::pair<const char*, ImageShape> cases[] = {
      {"softmax", kDigit}, {"mlp:784-40-24-10", kDigit}, {"lenet", {16, 18, 3}}};
  for (const auto& [spec, image] : cases) {
    SCOPED_TRACE(spec);
    const auto plain = must_make(spec, image, 5, *reference_);
    const auto fast = must_make(spec, image, 5, *onednn_);
    const Tensor weights = initial_weights(*plain), images = random_tensor(5 * image.values(), random_);
    const std::vector<int> labels = random_labels(5, 10, random_);
    for (int round = 0; round < 2; ++round) {  // the second finds activations of the first
      const TrainedPass expected = run_pass(*plain, weights, {images, labels});
      const TrainedPass actual = run_pass(*fast, weights, {images, labels});
      EXPECT_NEAR(actual.result.loss, expected.result.loss, 1e-5);
      EXPECT_EQ(actual.result.correct, expected.result.correct);
      expect_close(actual.gradients, expected.gradients, 1e-5, "gradients");
    }
  }
}

TEST_F(ModelTest, GradientsAreSlopesOfTheLossThroughAllLayers) {
  const auto model = must_make("lenet", {16, 16, 1}, 2, *reference_);
  Tensor weights = initial_weights(*model);
  const Tensor images = random_tensor(2 * 256, random_);
  const std::vector<int> labels{3, 8};
  const TrainedPass pass = run_pass(*model, weights, {images, labels});
  // ReLU and max-pool bend: where a bend lies on one side, the gradient is the slope of the other.
  for (const TensorSpec& tensor : model->layout().tensors()) {
    for (int sample = 0; sample < 4; ++sample) {
      const std::size_t i = tensor.range.begin + random_.below(tensor.range.size());
      const float before = weights[i];
      const auto slope_towards = [&](float step) {
        weights[i] = before + step;
        model->forward(weights, {images, labels});
        const double change = model->loss().loss - pass.result.loss;
        const double distance = static_cast<double>(weights[i]) - before;
        weights[i] = before;
        return change / distance;
      };
      const double error = std::min(std::abs(slope_towards(1e-3f) - pass.gradients[i]),
                                    std::abs(slope_towards(-1e-3f) - pass.gradients[i]));
      EXPECT_LE(error, 1e-3 + 0.01 * std::abs(pass.gradients[i])) << tensor.name;
    }
  }
}

TEST_F(ModelTest, InitialWeightsFollowFromTheSeedAloneAndStayWithinTheirLimits) {
  const auto model = must_make("mlp", kDigit, 4, *onednn_);
  const Tensor weights = initial_weights(*model, 3);
  EXPECT_EQ(weights, initial_weights(*must_make("mlp", kDigit, 9, *reference_), 3));
  EXPECT_NE(weights, initial_weights(*model, 4));
  const auto largest = [&](std::size_t tensor) {
    float magnitude = 0;
    for (float value : slice(ConstFloats(weights), model->layout().tensors()[tensor].range)) {
      magnitude = std::max(magnitude, std::abs(value));
    }
    return magnitude;
  };
  const auto just_below = [](double limit) {
    return testing::AllOf(testing::Le(static_cast<float>(limit)), testing::Gt(static_cast<float>(0.99 * limit)));
  };
  EXPECT_THAT(largest(0), just_below(std::sqrt(6.0 / 784)));
  EXPECT_EQ(largest(1), 0);
  EXPECT_THAT(largest(4), just_below(std::sqrt(3.0 / 256)));
}

// The largest of so many draws is hardly below the limit, and never above it.
void expect_limit(Model& model, const Tensor& weights, std::size_t tensor, double limit) {
  double largest = 0;
  for (const float value : slice(ConstFloats(weights), model.layout().tensors()[tensor].range)) {
    largest = std::max(largest, static_cast<double>(std::abs(value)));
  }
  EXPECT_LE(largest, limit * (1 + 1e-6)) << model.layout().tensors()[tensor].name;
  EXPECT_GT(largest, 0.97 * limit) << model.layout().tensors()[tensor].name;
}

TEST_F(ModelTest, BeginsWithWeightsOfTheInitialisationInItsSpec) {
  struct Case {
    const char* spec;
    double conv, hidden, last;  // of conv1 (9 inputs, 288 outputs), dense1 (5408, 64) and dense2 (64, 10)
  };
  for (const auto& [suffix, conv, hidden, last] :
       {Case{"", std::sqrt(6.0 / 9), std::sqrt(6.0 / 5408), std::sqrt(3.0 / 64)},
        Case{":init=he", std::sqrt(6.0 / 9), std::sqrt(6.0 / 5408), std::sqrt(6.0 / 64)},
        Case{":init=lecun", std::sqrt(3.0 / 9), std::sqrt(3.0 / 5408), std::sqrt(3.0 / 64)},
        Case{":init=glorot", std::sqrt(6.0 / (9 + 288)), std::sqrt(6.0 / (5408 + 64)), std::sqrt(6.0 / (64 + 10))}}) {
    SCOPED_TRACE(suffix);
    const std::unique_ptr<Model> model = must_make(std::string("conv:32-64") + suffix, kDigit, 1, *reference_);
    EXPECT_EQ(model->name(), "conv:32-64");
    const Tensor weights = initial_weights(*model);
    expect_limit(*model, weights, 0, conv);
    expect_limit(*model, weights, 2, hidden);
    expect_limit(*model, weights, 4, last);
    for (const std::size_t bias : {1, 3, 5}) {
      EXPECT_THAT(slice(ConstFloats(weights), model->layout().tensors()[bias].range), Each(0.0f));
    }
  }
}

TEST_F(ModelTest, OfTheTutorialHasItsParameters) {
  const Result<ParamLayout> layout = model_layout("conv:32-64", form_of_images(kDigit, 10));
  ASSERT_TRUE(layout.ok()) << layout.status().message();
  EXPECT_EQ(layout->parameter_count(), 320u + 346176u + 650u);
}

TEST_F(ModelTest, MakeModelSaysWhatIsWrongAndWhatWouldBeRight) {
  struct Case {
    const char* spec;
    ImageShape image;
    const char* message;
  };
  const Case cases[] = {
      {"resnet", kDigit,
       "--model=resnet: unknown model; must be softmax, mlp, mlp:WIDTHS, conv:CHANNELS-WIDTH, lenet, resnet20, "
       "resnet32, resnet56, resnet50, gpt, gpt:LAYERS-HEADS-WIDTH, ncf, ncf:WIDTH, wide-deep or wide-deep:WIDTH; did "
       "you mean "
       "resnet20?"},
      {"gtp:2-2-32", kDigit, "did you mean gpt?"},
      {"perceptron", kDigit, "or wide-deep:WIDTH"},
      {"", kDigit, "unknown model"},
      {"mlp:", kDigit, "as in 784-1024-1024-10"},
      {"conv:32", kDigit, "must be conv:CHANNELS-WIDTH, as in conv:32-64"},
      {"conv:32-64", {3, 3, 1}, "images of 3x3 are too small; it needs 4x4 or more"},
      {"mlp:init=best", kDigit, "the initialisation must be he, glorot or lecun"},
      {"mlp:784-x-10", kDigit, "as in 784-1024-1024-10"},
      {"mlp:784-0-10", kDigit, "widths of 1 to 65536"},
      {"mlp:784-99999999999-10", kDigit, "widths of 1 to 65536"},
      {"mlp:784--10", kDigit, "between dashes"},
      {"mlp:784-10-", kDigit, "between dashes"},
      {"mlp:784", kDigit, "at least two widths"},
      {"mlp:784-10", kColour, "the first width is 784, but an image of 32x32x3 has 3072 values"},
      {"mlp:784-100-12", kDigit, "the last width is 12, but the data has 10 classes"},
      {"lenet", {15, 28, 1}, "images of 15x28 are too small; lenet needs 16x16 or more"},
      {"resnet50", {32, 31, 3}, "--model=resnet50: images of 32x31 are too small; resnet50 needs 32x32 or more"},
  };
  for (const Case& c : cases) {
    const auto model = make_model(c.spec, form_of_images(c.image, 10), 1, *reference_);
    ASSERT_FALSE(model.ok()) << c.spec;
    EXPECT_EQ(model.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(model.status().message(), HasSubstr(c.message));
  }
  EXPECT_THAT(make_model("mlp", form_of_images(kDigit, 10), 0, *reference_).status().message(),
              HasSubstr("--batch-size=0"));
}

}  // namespace
}  // namespace syncopate::worker
