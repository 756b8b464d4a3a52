#include "worker/gpt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <numeric>

#include "tests/worker/asked_weights.h"
#include "tests/worker/tensor_helpers.h"
#include "worker/data/image_dataset.h"
#include "worker/data/text_form.h"
#include "worker/model.h"

namespace syncopate::worker {
namespace {

using testing::HasSubstr;

constexpr int kContext = 6, kCharacters = 11, kBatch = 3;

std::unique_ptr<Model> must_make(const std::string& spec, ComputeBackend& backend, int batch = kBatch,
                                 int context = kContext, int characters = kCharacters) {
  auto model = make_model(spec, form_of_text(context, characters), batch, backend);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(*model);
}

class Gpt : public testing::Test {
 protected:
  BatchView batch() const { return {{}, labels_, ids_}; }

  static Tensor initial_weights(const Model& model) {
    Tensor weights(model.layout().size());
    model.initialize(3, weights);
    return weights;
  }
  // Ten times as large but for the norms, so that no part of the model is close to linear.
  static Tensor large_weights(const Model& model) {
    Tensor weights = initial_weights(model);
    for (const TensorSpec& tensor : model.layout().tensors()) {
      if (tensor.name.find("norm") != std::string::npos) continue;
      for (float& weight : slice(Floats(weights), tensor.range)) weight *= 10;
    }
    return weights;
  }

  struct Pass {
    LossAndCorrect result;
    Tensor gradients;
    std::vector<std::size_t> reported;
  };

  // With gradients that begin as NaN but for the padding.
  Pass run_pass(Model& model, const Tensor& weights) const {
    Pass pass;
    pass.gradients.assign(weights.size(), 0.0f);
    for (const TensorSpec& tensor : model.layout().tensors()) {
      std::ranges::fill(slice(Floats(pass.gradients), tensor.range), std::nanf(""));
    }
    model.forward(weights, batch());
    pass.result = model.loss();
    model.backward(weights, pass.gradients, [&](std::size_t tensor) {
      pass.reported.push_back(tensor);
      for (float value : slice(ConstFloats(pass.gradients), model.layout().tensors()[tensor].range)) {
        ASSERT_FALSE(std::isnan(value)) << model.layout().tensors()[tensor].name << " is not final";
      }
    });
    return pass;
  }

  Random random_{5};
  std::unique_ptr<ComputeBackend> reference_ = make_reference_backend();
  std::unique_ptr<ComputeBackend> onednn_ = make_onednn_backend();
  std::vector<int> ids_ = random_labels(kBatch * kContext, kCharacters, random_);
  std::vector<int> labels_ = random_labels(kBatch * kContext, kCharacters, random_);
};

TEST_F(Gpt, HasAsManyParametersAsItsFormulaSays) {
  const auto formula = [](std::size_t V, std::size_t T, std::size_t L, std::size_t C) {
    return V * C + T * C + L * (12 * C * C + 13 * C) + 2 * C;
  };
  EXPECT_EQ(must_make("gpt:1-1-4", *reference_)->layout().parameter_count(), formula(kCharacters, kContext, 1, 4));
  EXPECT_EQ(must_make("gpt:4-4-128", *onednn_, 2, 64, 256)->layout().parameter_count(), formula(256, 64, 4, 128));
  EXPECT_EQ(must_make("gpt", *onednn_)->layout().parameter_count(), formula(kCharacters, kContext, 2, 64));
}

// Its layout is known without the gigabytes of its activations.
TEST_F(Gpt, OfTheSizeOfGpt2HasItsParameters) {
  const auto most_resident = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // KiB
  };
  const long before = most_resident();
  EXPECT_EQ(model_layout("gpt:12-12-768", form_of_text(1024, 50257))->parameter_count(), 124'439'808u);
  EXPECT_LT(most_resident() - before, 64 * 1024);
}

TEST_F(Gpt, CountsProductsAndTheAttentionThatIsNotMasked) {
  const double T = kContext, C = 8, V = kCharacters;
  EXPECT_EQ(must_make("gpt:2-2-8", *reference_)->flops_per_sample(),
            2 * (2 * T * 12 * C * C + 2 * T * (T + 1) * C) + 2 * T * C * V);
}

TEST_F(Gpt, ReportsTensorsFromTheLastToTheFirstEachWhenItIsFinal) {
  for (ComputeBackend* backend : {reference_.get(), onednn_.get()}) {
    const auto model = must_make("gpt:2-2-8", *backend);
    const std::vector<std::size_t> reported = run_pass(*model, initial_weights(*model)).reported;
    std::vector<std::size_t> expected(2 + 2 * 12 + 2);
    std::iota(expected.rbegin(), expected.rend(), 0);
    EXPECT_EQ(reported, expected);
    EXPECT_EQ(model->layout().tensors().front().name, "tokens.weight");
  }
}

TEST_F(Gpt, ReadsTheWeightsThatItAsksFor) {
  const auto model = must_make("gpt:2-2-8", *onednn_);
  expect_reads_what_it_asks_for(*model, initial_weights(*model), batch());
}

TEST_F(Gpt, GivesTheSameOnBothBackends) {
  for (const char* spec : {"gpt:1-1-5", "gpt:2-2-8", "gpt:2-4-32"}) {
    const auto plain = must_make(spec, *reference_), fast = must_make(spec, *onednn_);
    const Tensor weights = large_weights(*plain);
    for (int round = 0; round < 2; ++round) {  // the second finds activations of the first
      const Pass expected = run_pass(*plain, weights), actual = run_pass(*fast, weights);
      EXPECT_NEAR(actual.result.loss, expected.result.loss, 1e-5);
      EXPECT_EQ(actual.result.correct, expected.result.correct);
      expect_close(actual.gradients, expected.gradients, 1e-5, spec);
    }
  }
}

TEST_F(Gpt, GradientsAreSlopesOfTheMeanLossThroughAllLayers) {
  const auto model = must_make("gpt:2-2-8", *reference_);
  Tensor weights = large_weights(*model);
  const Pass pass = run_pass(*model, weights);
  for (const TensorSpec& tensor : model->layout().tensors()) {
    for (int sample = 0; sample < 8; ++sample) {
      const std::size_t i = tensor.range.begin + random_.below(tensor.range.size());
      const float before = weights[i];
      const auto loss_at = [&](float value) {
        weights[i] = value;
        model->forward(weights, batch());
        return model->loss().loss;
      };
      const double slope = (loss_at(before + 0.003f) - loss_at(before - 0.003f)) / 0.006;
      weights[i] = before;
      EXPECT_NEAR(pass.gradients[i], slope, 1e-4 + 0.003 * std::abs(slope)) << tensor.name;
    }
  }
}

TEST_F(Gpt, BeginsWithNormalWeightsThoseIntoTheStreamSmaller) {
  const auto model = must_make("gpt:8-4-64", *onednn_, 1, 64, 256);
  const Tensor weights = initial_weights(*model);
  EXPECT_EQ(weights, initial_weights(*must_make("gpt:8-4-64", *onednn_, 2, 64, 256)));
  for (const TensorSpec& tensor : model->layout().tensors()) {
    const ConstFloats values = slice(ConstFloats(weights), tensor.range);
    double squares = 0;
    for (const float value : values) squares += static_cast<double>(value) * value;
    const double deviation = std::sqrt(squares / static_cast<double>(values.size()));
    const bool into_stream = tensor.name.ends_with("projection.weight") || tensor.name.ends_with("mlp2.weight");
    const double expected = tensor.name.ends_with(".bias")                  ? 0
                            : tensor.name.find("norm") != std::string::npos ? 1
                            : into_stream                                   ? 0.02 / 4
                                                                            : 0.02;
    EXPECT_NEAR(deviation, expected, 0.05 * expected) << tensor.name;
  }
  model->forward(weights, {{}, std::vector<int>(64, 1), std::vector<int>(64, 2)});
  EXPECT_NEAR(model->loss().loss, std::log(256), 0.1) << "nothing is known yet";
}

TEST_F(Gpt, SaysWhatIsWrongAndWhatWouldBeRight) {
  const std::pair<const char*, const char*> cases[] = {
      {"gpt:", "must be gpt:LAYERS-HEADS-WIDTH, as in gpt:4-4-128"},
      {"gpt:2-4", "must be gpt:LAYERS-HEADS-WIDTH"},
      {"gpt:2-4-64-8", "must be gpt:LAYERS-HEADS-WIDTH"},
      {"gpt:2-x-64", "must be gpt:LAYERS-HEADS-WIDTH"},
      {"gpt:2-4-64x", "must be gpt:LAYERS-HEADS-WIDTH"},
      {"gpt:0-4-64", "layers must be 1 to 64, heads 1 to 64, the width 1 to 4096"},
      {"gpt:2-4-9999", "the width 1 to 4096"},
      {"gpt:2-4-66", "the width 66 must be a multiple of the 4 heads"},
      {"gptx", "did you mean gpt?"},
  };
  for (const auto& [spec, message] : cases) {
    const auto model = make_model(spec, form_of_text(8, 8), 1, *reference_);
    ASSERT_FALSE(model.ok()) << spec;
    EXPECT_EQ(model.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(model.status().message(), HasSubstr(message));
  }
  EXPECT_EQ(make_model("gpt", form_of_images({28, 28, 1}, 10), 1, *reference_).status().message(),
            "--model=gpt: learns texts, and the samples of this data set are none; use --dataset=text or grammar");
  EXPECT_EQ(make_model("mlp", form_of_text(8, 8), 1, *reference_).status().message(),
            "--model=mlp: is no model of texts, which the samples of this data set are; use gpt:LAYERS-HEADS-WIDTH");
}

}  // namespace
}  // namespace syncopate::worker
