// Whole models on a GPU against the same on the plain loops: forward, backward and loss.
#include <cmath>

#include "tests/worker/cuda/cuda_backend_fixture.h"
#include "worker/data/image_dataset.h"
#include "worker/model.h"

namespace syncopate::worker {
namespace {

class CudaModel : public CudaBackendFixture {
 protected:
  struct Pass {
    LossAndCorrect result;
    Tensor gradients;
    std::vector<std::size_t> reported;
  };

  // All memory is the backend's own side; gradients begin as NaN.
  static Pass run_pass(Model& model, In weights, const BatchView& batch, Out gradients) {
    Pass pass;
    model.forward(weights, batch);
    model.backward(weights, gradients, [&](std::size_t tensor) { pass.reported.push_back(tensor); });
    pass.result = model.loss();
    return pass;
  }
  Pass run_on_host(Model& model, const Tensor& weights, const BatchView& batch) {
    Tensor gradients = poisoned(static_cast<int>(weights.size()));
    Pass pass = run_pass(model, weights, batch, gradients);
    pass.gradients = gradients;
    return pass;
  }
  Pass run_on_device(Model& model, const Tensor& weights, const BatchView& batch) {
    const Out gradients = tensor_of(poisoned(static_cast<int>(weights.size())));
    // As where float16 is trained in, whose smallest numbers are larger than some gradients.
    const float factor = rounding_of(GetParam()) > 0 ? 1024 : 1;
    cuda_->scale_gradients_by(upload(Tensor{factor}));
    const BatchView there{upload(Tensor(batch.values.begin(), batch.values.end())),
                          upload(std::vector<int>(batch.labels.begin(), batch.labels.end()))};
    Pass pass = run_pass(model, tensor_of(weights), there, gradients);
    pass.gradients = download(In(gradients));
    for (float& gradient : pass.gradients) gradient /= factor;
    return pass;
  }

  // Where all is float32, by elements. Else, and for a model as deep as kByDirection is for, by length and direction of
  // each tensor's gradient: rounding turns a ReLU on or off here and there, which changes single elements by as much as
  // they have.
  static constexpr double kByDirection = 1;
  void expect_gradients_agree(const ParamLayout& layout, In actual, In expected, double tolerance) {
    for (const TensorSpec& tensor : layout.tensors()) {
      SCOPED_TRACE(tensor.name);
      const In a = slice(actual, tensor.range), e = slice(expected, tensor.range);
      if (GetParam() == Precision::kFp32 && tolerance < kByDirection) {
        expect_close(a, e, tolerance, "gradient");
        continue;
      }
      double product = 0, of_actual = 0, of_expected = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        product += static_cast<double>(a[i]) * e[i];
        of_actual += static_cast<double>(a[i]) * a[i];
        of_expected += static_cast<double>(e[i]) * e[i];
      }
      EXPECT_GT(product / std::sqrt(of_actual * of_expected), 0.99);
      EXPECT_NEAR(std::sqrt(of_actual / of_expected), 1, 0.05);
    }
  }

  void expect_agrees(const char* spec, ImageShape image, int batch, double tolerance = 2e-5) {
    expect_agrees_with(*reference_, spec, image, batch, tolerance);
  }
  void expect_agrees_with(ComputeBackend& host, const char* spec, ImageShape image, int batch, double tolerance) {
    SCOPED_TRACE(spec);
    const auto plain = std::move(*make_model(spec, form_of_images(image, 10), batch, host));
    const auto fast = std::move(*make_model(spec, form_of_images(image, 10), batch, *cuda_));
    Tensor weights(plain->layout().size());
    plain->initialize(3, weights);
    weights = rounded(weights);
    const std::vector<int> labels = random_labels(batch, 10, random_);
    for (int round = 0; round < 2; ++round) {  // the second finds activations and algorithms of the first
      const Tensor images = random_values(batch * image.values());
      const Pass expected = run_on_host(*plain, weights, {images, labels});
      const Pass actual = run_on_device(*fast, weights, {images, labels});
      ASSERT_TRUE(cuda_->status().ok()) << cuda_->status().message();
      EXPECT_NEAR(actual.result.loss, expected.result.loss, 5 * tolerance_of(GetParam()));
      EXPECT_EQ(actual.reported, expected.reported);
      EXPECT_NEAR(actual.result.correct, expected.result.correct, GetParam() == Precision::kFp32 ? 0 : 2);
      expect_gradients_agree(plain->layout(), actual.gradients, expected.gradients, tolerance);
      expect_close(download(In(fast->local_state())), plain->local_state(), 1e-4, "local state");
    }
  }
};

TEST_P(CudaModel, SoftmaxGivesTheSameAsOnPlainLoops) { expect_agrees("softmax", {28, 28, 1}, 64); }
TEST_P(CudaModel, MlpGivesTheSameAsOnPlainLoops) { expect_agrees("mlp", {28, 28, 1}, 64); }
TEST_P(CudaModel, MlpOfOddWidthsGivesTheSameAsOnPlainLoops) { expect_agrees("mlp:784-41-23-10", {28, 28, 1}, 5); }
TEST_P(CudaModel, LenetGivesTheSameAsOnPlainLoops) { expect_agrees("lenet", {28, 28, 1}, 16); }
TEST_P(CudaModel, LenetOnColourImagesGivesTheSameAsOnPlainLoops) { expect_agrees("lenet", {16, 18, 3}, 5); }

// Eight images of 20 layers of batch norm: rounding that turns a ReLU on or off moves all that share its moments.
TEST_P(CudaModel, ResnetGivesTheSameAsOnPlainLoops) {
  if (GetParam() != Precision::kFp32) GTEST_SKIP() << "rounded factors change its gradients by more than a tolerance";
  expect_agrees("resnet20", {9, 8, 3}, 8, 1e-3);
}

TEST_P(CudaModel, Resnet50GivesTheSameAsOnTheProcessor) {
  if (GetParam() != Precision::kFp32) GTEST_SKIP() << "as above";
  const std::unique_ptr<ComputeBackend> onednn = make_onednn_backend();  // plain loops would take a minute
  expect_agrees_with(*onednn, "resnet50", {48, 48, 3}, 4, kByDirection);
}

INSTANTIATE_TEST_SUITE_P(, CudaModel,
                         testing::Values(Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16),
                         name_of_case);

}  // namespace
}  // namespace syncopate::worker
