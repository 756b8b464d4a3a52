#include "worker/resnet50.h"

#include <gtest/gtest.h>

#include "tests/worker/tensor_helpers.h"
#include "worker/data/image_dataset.h"
#include "worker/model.h"

namespace syncopate::worker {
namespace {

constexpr ImageShape kImagenet{224, 224, 3}, kSmallPhotograph{64, 64, 3}, kSmallest{32, 32, 3};
constexpr int kFewImages = 4;

std::unique_ptr<Model> make_resnet50(ComputeBackend& backend, ImageShape image, int batch, int classes,
                                     Pass pass = Pass::kTraining) {
  auto model = make_model("resnet50", form_of_images(image, classes), batch, backend, pass);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(*model);
}

class Resnet50 : public testing::Test {
 protected:
  Random random_{5};
  std::unique_ptr<ComputeBackend> reference_ = make_reference_backend();
  std::unique_ptr<ComputeBackend> onednn_ = make_onednn_backend();
};

TEST_F(Resnet50, HasAsManyParametersAsTorchvisions) {
  const ParamLayout layout = *model_layout("resnet50", form_of_images(kImagenet, 1000));
  EXPECT_EQ(layout.parameter_count(), 25557032u);
  EXPECT_EQ(layout.tensors().size(), 161u);
  EXPECT_EQ(model_layout("resnet50", form_of_images(kSmallest, 10))->parameter_count(), 25557032u - 990 * 2049);
}

// Table 1 of the paper has 3.8 · 10^9 multiplications; with the stride in the 3x3, those of three blocks' first 1x1 are
// made at four times as many pixels.
TEST_F(Resnet50, CountsItsOperations) {
  const std::unique_ptr<ComputeBackend> none = make_address_backend();
  const auto model = make_resnet50(*none, kImagenet, 1, 1000);
  EXPECT_EQ(model->flops_per_sample(), 2.0 * 4'089'184'256);
}

// Images that leave the last batch norms several rows to take moments of: of two, it keeps little more than a sign.
TEST_F(Resnet50, GivesTheSameOnBothBackends) {
  const auto plain = make_resnet50(*reference_, kSmallPhotograph, 3, 10),
             fast = make_resnet50(*onednn_, kSmallPhotograph, 3, 10);
  Tensor weights(plain->layout().size());
  plain->initialize(3, weights);
  const Tensor images = random_tensor(3 * kSmallPhotograph.values(), random_);
  const std::vector<int> labels{4, 9, 0};
  plain->forward(weights, {images, labels});
  fast->forward(weights, {images, labels});
  EXPECT_NEAR(fast->loss().loss, plain->loss().loss, 1e-3 * plain->loss().loss);
  expect_close(fast->local_state(), plain->local_state(), 1e-3, "local state");
}

TEST_F(Resnet50, LearnsABatchByHeart) {
  const auto model = make_resnet50(*onednn_, kSmallest, kFewImages, 10);
  const Tensor images = random_tensor(kFewImages * kSmallest.values(), random_);
  const std::vector<int> labels{1, 7, 3, 1};
  Tensor weights(model->layout().size()), gradients(weights.size());
  model->initialize(1, weights);
  double first = 0;
  for (int step = 0; step < 12; ++step) {
    model->forward(weights, {images, labels});
    if (step == 0) first = model->loss().loss;
    model->backward(weights, gradients, [](std::size_t) {});
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.01f * gradients[i];
  }
  EXPECT_LT(model->loss().loss, 0.2 * first);
}

}  // namespace
}  // namespace syncopate::worker
