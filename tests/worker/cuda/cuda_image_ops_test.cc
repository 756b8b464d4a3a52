// Batch norm, mean pooling and subsampling on a GPU against the plain loops.
#include "tests/worker/cuda/cuda_backend_fixture.h"

namespace syncopate::worker {
namespace {

constexpr double kTolerance = 1e-5;  // of the largest element: all of them compute in float32 in every precision

class CudaImageOps : public CudaBackendFixture {
 protected:
  void expect_near(In actual, const Tensor& expected, const char* what, double tolerance = kTolerance) {
    expect_close_on_device(actual, expected, what, tolerance);
  }

  void expect_batch_norm_agrees(const BatchNormShape& s, float offset, bool with_dx) {
    Tensor x = random_tensor(s.rows * s.channels, random_);
    for (float& value : x) value += offset;
    expect_batch_norm_agrees(s, rounded(x), offset, with_dx);
  }
  void expect_batch_norm_agrees(const BatchNormShape& s, const Tensor& x, float offset, bool with_dx) {
    const Tensor scale = random_values(s.channels), shift = random_values(s.channels);
    const Tensor residual = random_values(s.residual ? s.rows * s.channels : 0);
    Tensor dy = random_values(s.rows * s.channels);
    Tensor y = poisoned(s.rows * s.channels), evaluated = y, dx = poisoned(with_dx ? s.rows * s.channels : 0);
    Tensor mean = poisoned(s.channels), inverse = mean, dscale = mean, dshift = mean;
    Tensor running_mean = random_tensor(s.channels, random_);
    Tensor running_variance(static_cast<std::size_t>(s.channels), 1.0f);
    const Out y_there = tensor_of(y), evaluated_there = tensor_of(evaluated), dx_there = tensor_of(dx);
    const BatchMoments batch_there{upload(mean), upload(inverse)};
    const Out dscale_there = tensor_of(dscale), dshift_there = tensor_of(dshift);
    const RunningMoments running_there{upload(running_mean), upload(running_variance)};
    const In x_there = tensor_of(x), scale_there = tensor_of(scale), shift_there = tensor_of(shift);
    const In residual_there = tensor_of(residual);
    const Out dy_there = tensor_of(dy);

    const BatchMoments batch{mean, inverse};
    const RunningMoments running{running_mean, running_variance};
    reference_->batch_norm_forward(s, x, scale, shift, batch, running, residual, y);
    reference_->batch_norm_inference(s, x, scale, shift, running, residual, evaluated);
    cuda_->batch_norm_forward(s, x_there, scale_there, shift_there, batch_there, running_there, residual_there,
                              y_there);
    // Both cut dy by one y: an element that is nearly 0 may be 0 on one side alone.
    reference_->batch_norm_backward(s, x, scale, shift, batch, download(In(y_there)), dy, dscale, dshift, dx);
    cuda_->batch_norm_backward(s, x_there, scale_there, shift_there, batch_there, y_there, dy_there, dscale_there,
                               dshift_there, with_dx ? dx_there : Out());
    cuda_->batch_norm_inference(s, x_there, scale_there, shift_there, running_there, residual_there, evaluated_there);

    const double tolerance = kTolerance * (1 + offset);
    expect_near(y_there, y, "y", tolerance);
    expect_near(batch_there.mean, mean, "mean");
    expect_near(batch_there.inverse_deviation, inverse, "inverse deviation", tolerance);
    expect_near(dscale_there, dscale, "dscale", tolerance);
    expect_near(dshift_there, dshift, "dshift", tolerance);
    if (with_dx) expect_near(dx_there, dx, "dx", tolerance);
    expect_equal_on_device(dy_there, dy, "dy");
    expect_near(running_there.mean, running_mean, "running mean");
    expect_near(running_there.variance, running_variance, "running variance");
    expect_near(evaluated_there, evaluated, "y of evaluation", tolerance);
  }
};

TEST_P(CudaImageOps, BatchNormAgreesWithPlainLoopsAlsoFarFromZero) {
  // So many rows that each block folds more than its threads take at once. The other shapes show all that is left.
  for (const float offset : {0.0f, 50.0f}) {
    expect_batch_norm_agrees({20000, 48, /*relu=*/true, /*residual=*/true}, offset, true);
    expect_batch_norm_agrees({20000, 48}, offset, true);
  }
  const BatchNormShape shapes[] = {{2, 1}, {3, 5}, {130, 16}, {257, 33}, {64, 64}};
  for (const BatchNormShape& s : shapes) {
    for (const bool relu : {false, true}) {
      for (const float offset : {0.0f, 50.0f}) {
        for (const bool residual : {false, true}) {
          SCOPED_TRACE(testing::Message() << s.rows << " x " << s.channels << (relu ? ", relu" : "")
                                          << (residual ? ", residual" : "") << " at " << offset);
          expect_batch_norm_agrees({s.rows, s.channels, relu, residual}, offset, true);
          expect_batch_norm_agrees({s.rows, s.channels, relu, residual}, offset, false);
        }
      }
    }
  }
}

// Sums of squared distances from the first value would lose all digits here.
TEST_P(CudaImageOps, BatchNormAgreesWithPlainLoopsWhereTheFirstRowIsFarFromTheOthers) {
  const BatchNormShape s{20000, 3};
  Tensor x = random_values(s.rows * s.channels);
  std::fill_n(x.begin(), s.channels, 300.0f);
  expect_batch_norm_agrees(s, x, 0, true);
}

// The order in which blocks end, and so which one is the last, is another each time.
TEST_P(CudaImageOps, BatchNormGivesTheSameBitsAgain) {
  const BatchNormShape s{5000, 40, true, true};
  const int count = s.rows * s.channels;
  const In x = tensor_of(random_tensor(count, random_)), residual = tensor_of(random_tensor(count, random_));
  const In scale = tensor_of(random_tensor(s.channels, random_)), shift = tensor_of(random_tensor(s.channels, random_));
  const Tensor gradient = random_tensor(count, random_);
  const auto results = [&] {
    const Tensor zeros(static_cast<std::size_t>(s.channels));
    const BatchMoments batch{upload(zeros), upload(zeros)};
    const RunningMoments running{upload(zeros), upload(zeros)};
    const Out y = tensor_of(Tensor(x.size())), dx = tensor_of(Tensor(x.size())), dy = tensor_of(gradient);
    const Out dscale = tensor_of(zeros), dshift = tensor_of(zeros);
    cuda_->batch_norm_forward(s, x, scale, shift, batch, running, residual, y);
    cuda_->batch_norm_backward(s, x, scale, shift, batch, y, dy, dscale, dshift, dx);
    return std::vector<Tensor>{download(In(y)), download(In(dx)), download(In(dscale)), download(In(dshift)),
                               download(In(running.variance))};
  };
  const std::vector<Tensor> first = results();
  for (int round = 0; round < 3; ++round) EXPECT_EQ(results(), first);
}

TEST_P(CudaImageOps, MeanPoolAgreesWithPlainLoops) {
  const MeanPoolShape shapes[] = {{1, 1, 1}, {3, 64, 64}, {2, 49, 17}};
  for (const MeanPoolShape& s : shapes) {
    const Tensor x = random_values(s.batch * s.pixels * s.channels), dy = random_values(s.batch * s.channels);
    Tensor y = poisoned(s.batch * s.channels), dx = poisoned(s.batch * s.pixels * s.channels);
    const Out y_there = tensor_of(y), dx_there = tensor_of(dx);
    reference_->mean_pool_forward(s, x, y);
    reference_->mean_pool_backward(s, dy, dx);
    cuda_->mean_pool_forward(s, tensor_of(x), y_there);
    cuda_->mean_pool_backward(s, tensor_of(dy), dx_there);
    expect_near(y_there, y, "y");
    expect_near(dx_there, dx, "dx");
  }
}

TEST_P(CudaImageOps, SubsampleAgreesWithPlainLoops) {
  const SubsampleShape shapes[] = {{1, 1, 1, 1, 1, 1}, {2, 8, 8, 16, 32, 2}, {3, 7, 6, 3, 5, 2}, {1, 7, 7, 4, 4, 3}};
  for (const SubsampleShape& s : shapes) {
    const int inputs = s.batch * s.height * s.width * s.in;
    const int outputs = s.batch * s.out_height() * s.out_width() * s.out;
    const Tensor x = random_values(inputs), dy = random_values(outputs);
    Tensor y = poisoned(outputs), dx = poisoned(inputs);
    const Out y_there = tensor_of(y), dx_there = tensor_of(dx);
    reference_->subsample_forward(s, x, y);
    reference_->subsample_backward(s, dy, dx);
    cuda_->subsample_forward(s, tensor_of(x), y_there);
    cuda_->subsample_backward(s, tensor_of(dy), dx_there);
    expect_equal_on_device(y_there, y, "y");
    expect_equal_on_device(dx_there, dx, "dx");
  }
}

INSTANTIATE_TEST_SUITE_P(, CudaImageOps, testing::Values(Precision::kFp32, Precision::kBf16, Precision::kFp16),
                         name_of_case);

}  // namespace
}  // namespace syncopate::worker
