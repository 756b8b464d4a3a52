// oneDNN's results against those of the plain loops, over shapes that fill vector registers and shapes that do not.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/worker/tensor_helpers.h"
#include "worker/backend/compute_backend.h"

namespace syncopate::worker {
namespace {

constexpr double kTolerance = 2e-6;  // of the largest element; float32 has 6e-8, sums here are of up to 1000 terms

class OneDnnBackend : public testing::Test {
 protected:
  void expect_dense_agrees(const DenseShape& s, bool with_dx) {
    const Tensor x = random_tensor(s.batch * s.in, random_), w = random_tensor(s.out * s.in, random_);
    const Tensor b = random_tensor(s.out, random_), dy = random_tensor(s.batch * s.out, random_);
    Tensor y[2], dw[2], db[2], dx[2];
    for (int i : {0, 1}) {
      y[i] = poisoned(s.batch * s.out), dw[i] = poisoned(s.out * s.in), db[i] = poisoned(s.out);
      dx[i] = poisoned(with_dx ? s.batch * s.in : 0);
      backends_[i]->dense_forward(s, x, w, b, y[i]);
      backends_[i]->dense_backward(s, x, w, dy, dw[i], db[i], dx[i]);
    }
    expect_close(y[1], y[0], kTolerance, "y");
    expect_close(dw[1], dw[0], kTolerance, "dw");
    expect_close(db[1], db[0], kTolerance, "db");
    expect_close(dx[1], dx[0], kTolerance, "dx");
  }

  void expect_conv_agrees(const ConvShape& s, bool with_dx) {
    const int inputs = s.batch * s.height * s.width * s.in;
    const int outputs = s.batch * s.out_height() * s.out_width() * s.out;
    const int weights = s.out * s.kernel * s.kernel * s.in;
    const Tensor x = random_tensor(inputs, random_), w = random_tensor(weights, random_);
    const Tensor b = random_tensor(s.bias ? s.out : 0, random_), dy = random_tensor(outputs, random_);
    Tensor y[2], dw[2], db[2], dx[2];
    for (int i : {0, 1}) {
      y[i] = poisoned(outputs), dw[i] = poisoned(weights), db[i] = poisoned(s.bias ? s.out : 0);
      dx[i] = poisoned(with_dx ? inputs : 0);
      backends_[i]->conv2d_forward(s, x, w, b, y[i]);
      backends_[i]->conv2d_backward(s, x, w, dy, dw[i], db[i], dx[i]);
    }
    expect_close(y[1], y[0], kTolerance, "y");
    expect_close(dw[1], dw[0], kTolerance, "dw");
    expect_close(db[1], db[0], kTolerance, "db");
    expect_close(dx[1], dx[0], kTolerance, "dx");
  }

  void expect_pool_agrees(const PoolShape& s) {
    const int inputs = s.batch * s.height * s.width * s.channels;
    const int outputs = s.batch * s.out_height() * s.out_width() * s.channels;
    Tensor x = random_tensor(inputs, random_);
    for (float& value : x) value = std::round(value * 4);  // many equals
    const Tensor dy = random_tensor(outputs, random_);
    Tensor y[2], dx[2];
    std::vector<unsigned char> index[2];
    for (int i : {0, 1}) {
      y[i] = poisoned(outputs), dx[i] = poisoned(inputs);
      index[i].assign(static_cast<std::size_t>(outputs), 255);
      backends_[i]->max_pool_forward(s, x, y[i], index[i]);
      backends_[i]->max_pool_backward(s, dy, index[i], dx[i]);
    }
    EXPECT_EQ(y[1], y[0]);
    EXPECT_EQ(index[1], index[0]);
    EXPECT_EQ(dx[1], dx[0]);
  }

  void expect_batch_norm_agrees(const BatchNormShape& s, float offset, bool with_dx) {
    Tensor x = random_tensor(s.rows * s.channels, random_);
    for (float& value : x) value += offset;
    const Tensor scale = random_tensor(s.channels, random_), shift = random_tensor(s.channels, random_);
    const Tensor gradient = random_tensor(s.rows * s.channels, random_),
                 before = random_tensor(2 * s.channels, random_);
    const Tensor residual = random_tensor(s.residual ? s.rows * s.channels : 0, random_);
    Tensor y[2], mean[2], inverse[2], dscale[2], dshift[2], dx[2], evaluated[2];
    Tensor running_mean[2], running_variance[2], dy[2] = {gradient, gradient};
    for (int i : {0, 1}) {
      y[i] = evaluated[i] = poisoned(s.rows * s.channels);
      dx[i] = poisoned(with_dx ? s.rows * s.channels : 0);
      mean[i] = inverse[i] = dscale[i] = dshift[i] = poisoned(s.channels);
      running_mean[i].assign(before.begin(), before.begin() + s.channels);
      running_variance[i].assign(static_cast<std::size_t>(s.channels), 1.0f);
      const BatchMoments batch{mean[i], inverse[i]};
      const RunningMoments running{running_mean[i], running_variance[i]};
      backends_[i]->batch_norm_forward(s, x, scale, shift, batch, running, residual, y[i]);
      backends_[i]->batch_norm_backward(s, x, scale, shift, batch, y[i], dy[i], dscale[i], dshift[i], dx[i]);
      backends_[i]->batch_norm_inference(s, x, scale, shift, running, residual, evaluated[i]);
    }
    const double tolerance = kTolerance * (1 + std::abs(offset));
    expect_close(y[1], y[0], tolerance, "y");
    expect_close(mean[1], mean[0], kTolerance, "mean");
    expect_close(inverse[1], inverse[0], tolerance, "inverse deviation");
    expect_close(dscale[1], dscale[0], tolerance, "dscale");
    expect_close(dshift[1], dshift[0], tolerance, "dshift");
    expect_close(dx[1], dx[0], tolerance, "dx");
    EXPECT_EQ(dy[1], dy[0]);
    expect_close(running_mean[1], running_mean[0], kTolerance, "running mean");
    expect_close(running_variance[1], running_variance[0], kTolerance, "running variance");
    expect_close(evaluated[1], evaluated[0], tolerance, "y of evaluation");
  }

  Random random_{7};
  std::unique_ptr<ComputeBackend> backends_[2] = {make_reference_backend(), make_onednn_backend()};
};

TEST_F(OneDnnBackend, DenseAgreesWithPlainLoops) {
  const DenseShape shapes[] = {{1, 1, 1},    {1, 7, 3},     {3, 16, 16},  {5, 17, 10},
                               {32, 64, 10}, {33, 100, 48}, {64, 10, 33}, {7, 784, 31}};
  for (const DenseShape& shape : shapes) {
    SCOPED_TRACE(testing::Message() << shape.batch << " x " << shape.in << " -> " << shape.out);
    for (const bool relu : {false, true}) {
      for (const bool with_dx : {false, true}) {
        expect_dense_agrees({shape.batch, shape.in, shape.out, relu}, with_dx);
      }
    }
  }
}

TEST_F(OneDnnBackend, Conv2dAgreesWithPlainLoops) {
  const ConvShape shapes[] = {{1, 5, 5, 1, 1, 5},
                              {2, 6, 9, 1, 3, 3},
                              {1, 7, 6, 2, 5, 1},
                              {3, 9, 8, 3, 7, 5},
                              {2, 28, 28, 1, 32, 5},
                              {3, 12, 12, 32, 64, 5},
                              {2, 14, 14, 3, 32, 5},
                              {5, 8, 8, 17, 33, 3},
                              {2, 7, 8, 3, 5, 3, 1, 1},
                              {2, 8, 7, 16, 32, 3, 2, 1, false},
                              {1, 9, 9, 2, 4, 1, 2, 0, false},
                              {4, 8, 8, 16, 16, 3, 1, 1, false},
                              {2, 7, 7, 3, 16, 5, 3, 2, true}};
  for (const ConvShape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.batch << " x " << s.height << "x" << s.width << "x" << s.in << " -> " << s.out
                                    << ", kernel " << s.kernel << ", stride " << s.stride << ", padding " << s.padding
                                    << (s.bias ? ", bias" : ""));
    expect_conv_agrees(s, true);
    expect_conv_agrees(s, false);
  }
}

// With windows side by side, overlapping, apart from each other, and beyond the border.
TEST_F(OneDnnBackend, MaxPoolAgreesWithPlainLoopsAlsoAmongEqualsAndAtARest) {
  const PoolShape shapes[] = {{1, 2, 2, 1, 2, 2},    {3, 8, 8, 32, 2, 2},   {2, 7, 5, 3, 2, 2},
                              {2, 9, 10, 17, 3, 3},  {1, 4, 4, 5, 1, 1},    {2, 16, 15, 33, 3, 2, 1},
                              {1, 1, 1, 4, 3, 2, 1}, {2, 9, 8, 5, 3, 1, 2}, {1, 10, 11, 3, 2, 3},
                              {1, 7, 7, 2, 5, 2, 4}};
  for (const PoolShape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.batch << " x " << s.height << "x" << s.width << "x" << s.channels << " by "
                                    << s.size << " every " << s.stride << " from " << -s.padding);
    expect_pool_agrees(s);
  }
}

TEST_F(OneDnnBackend, BatchNormAgreesWithPlainLoopsAlsoFarFromZero) {
  const BatchNormShape shapes[] = {{2, 1}, {3, 5}, {130, 16}, {257, 33}, {1000, 48}, {64, 64}};
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

// By hand: (1, 3) has the mean 2 and the variance 1, unbiased 2; (0, 4) the mean 2 and the variance 4, unbiased 8.
TEST_F(OneDnnBackend, BatchNormKeepsAMovingMeanOfTheBatchesMoments) {
  for (const auto& backend : backends_) {
    const Tensor x{1, 0, 3, 4}, scale{1, 2}, shift{0, 1};
    Tensor y = poisoned(4), mean = poisoned(2), inverse = poisoned(2), running_mean{0, 0}, running_variance{1, 1};
    backend->batch_norm_forward({2, 2}, x, scale, shift, {mean, inverse}, {running_mean, running_variance}, {}, y);
    expect_close(y, Tensor{-1, -1, 1, 3}, 1e-5, "y");
    expect_close(mean, Tensor{2, 2}, 0, "mean");
    expect_close(inverse, Tensor{1, 0.5}, 1e-5, "inverse deviation");
    expect_close(running_mean, Tensor{0.2f, 0.2f}, 1e-7, "running mean");
    expect_close(running_variance, Tensor{1.1f, 1.7f}, 1e-6, "running variance");
  }
}

TEST_F(OneDnnBackend, BiasAgreesWithPlainLoops) {
  const BiasShape shapes[] = {{1, 1}, {3, 5}, {700, 32}, {129, 100}};
  for (const BiasShape& shape : shapes) {
    for (const bool relu : {false, true}) {
      const BiasShape s{shape.rows, shape.columns, relu};
      const Tensor b = random_tensor(s.columns, random_), x = random_tensor(s.rows * s.columns, random_);
      const Tensor gradient = random_tensor(s.rows * s.columns, random_);
      Tensor y[2] = {x, x}, dy[2] = {gradient, gradient}, db[2];
      for (int i : {0, 1}) {
        db[i] = poisoned(s.columns);
        backends_[i]->bias_forward(s, b, y[i]);
        backends_[i]->bias_backward(s, y[i], dy[i], db[i]);
      }
      EXPECT_EQ(y[1], y[0]);
      EXPECT_EQ(dy[1], dy[0]);
      expect_close(db[1], db[0], kTolerance, "db");
    }
  }
}

TEST_F(OneDnnBackend, MeanPoolAgreesWithPlainLoops) {
  const MeanPoolShape shapes[] = {{1, 1, 1}, {3, 64, 64}, {2, 49, 17}};
  for (const MeanPoolShape& s : shapes) {
    const Tensor x = random_tensor(s.batch * s.pixels * s.channels, random_);
    const Tensor dy = random_tensor(s.batch * s.channels, random_);
    Tensor y[2], dx[2];
    for (int i : {0, 1}) {
      y[i] = poisoned(s.batch * s.channels), dx[i] = poisoned(s.batch * s.pixels * s.channels);
      backends_[i]->mean_pool_forward(s, x, y[i]);
      backends_[i]->mean_pool_backward(s, dy, dx[i]);
    }
    expect_close(y[1], y[0], kTolerance, "y");
    expect_close(dx[1], dx[0], kTolerance, "dx");
  }
}

TEST_F(OneDnnBackend, SubsampleAgreesWithPlainLoops) {
  const SubsampleShape shapes[] = {{1, 1, 1, 1, 1, 1}, {2, 8, 8, 16, 32, 2}, {3, 7, 6, 3, 5, 2}, {1, 7, 7, 4, 4, 3}};
  for (const SubsampleShape& s : shapes) {
    const int inputs = s.batch * s.height * s.width * s.in;
    const int outputs = s.batch * s.out_height() * s.out_width() * s.out;
    const Tensor x = random_tensor(inputs, random_), dy = random_tensor(outputs, random_);
    Tensor y[2], dx[2];
    for (int i : {0, 1}) {
      y[i] = poisoned(outputs), dx[i] = poisoned(inputs);
      backends_[i]->subsample_forward(s, x, y[i]);
      backends_[i]->subsample_backward(s, dy, dx[i]);
    }
    EXPECT_EQ(y[1], y[0]);
    EXPECT_EQ(dx[1], dx[0]);
  }
}

TEST_F(OneDnnBackend, ReluAgreesWithPlainLoops) {
  for (int count : {0, 1, 15, 16, 17, 1000}) {
    Tensor y = random_tensor(count, random_), dy = random_tensor(count, random_);
    Tensor reference_y = y, reference_dy = dy;
    backends_[0]->relu_forward(reference_y), backends_[1]->relu_forward(y);
    backends_[0]->relu_backward(reference_y, reference_dy), backends_[1]->relu_backward(y, dy);
    EXPECT_EQ(y, reference_y);
    EXPECT_EQ(dy, reference_dy);
  }
}

TEST_F(OneDnnBackend, AddsAsPlainLoopsDo) {
  for (int count : {0, 1, 15, 16, 17, 1000}) {
    const Tensor x = random_tensor(count, random_);
    Tensor y = random_tensor(count, random_), expected = y;
    backends_[0]->add(x, expected), backends_[1]->add(x, y);
    EXPECT_EQ(y, expected);
  }
}

TEST_F(OneDnnBackend, SoftmaxCrossEntropyAgreesWithPlainLoopsAlsoForLargeLogits) {
  for (float magnitude : {1.0f, 100.0f, 10000.0f}) {
    for (int batch : {1, 3, 64}) {
      Tensor logits = random_tensor(batch * 10, random_);
      for (float& logit : logits) logit *= magnitude;
      const std::vector<int> labels = random_labels(batch, 10, random_);
      Tensor gradient[2] = {poisoned(batch * 10), poisoned(batch * 10)};
      LossAndCorrect result[2];
      for (int i : {0, 1}) {
        backends_[i]->softmax_cross_entropy(batch, 10, logits, labels, 1, gradient[i]);
        result[i] = backends_[i]->loss();
        backends_[i]->softmax_cross_entropy(batch, 10, logits, labels, 1, {});
        EXPECT_NEAR(backends_[i]->loss().loss, result[i].loss, 1e-6 * (1 + result[i].loss));
      }
      EXPECT_NEAR(result[1].loss, result[0].loss, 1e-6 * (1 + result[0].loss));
      EXPECT_EQ(result[1].correct, result[0].correct);
      expect_close(gradient[1], gradient[0], 1e-6, "dlogits");
    }
  }
}

TEST_F(OneDnnBackend, SoftmaxCrossEntropyOfAPartOfABatchIsThatOfTheSmallerBatch) {
  const Tensor logits = random_tensor(6 * 10, random_);
  std::vector<int> labels = random_labels(6, 10, random_);
  labels[4] = labels[5] = -1;
  for (const auto& backend : backends_) {
    Tensor small = poisoned(4 * 10), whole = poisoned(6 * 10);
    backend->softmax_cross_entropy(4, 10, std::span(logits).first(40), std::span(labels).first(4), 1, small);
    const LossAndCorrect expected = backend->loss();
    backend->softmax_cross_entropy(6, 10, logits, labels, 6.0 / 4.0, whole);
    EXPECT_NEAR(backend->loss().loss, expected.loss, 1e-6);
    EXPECT_EQ(backend->loss().correct, expected.correct);
    expect_close(Tensor(whole.begin(), whole.begin() + 40), small, 1e-6, "dlogits");
    EXPECT_TRUE(std::all_of(whole.begin() + 40, whole.end(), [](float value) { return value == 0; }));
  }
}

TEST_F(OneDnnBackend, ReluKeepsWhatIsNoNumber) {
  for (const auto& backend : backends_) {
    Tensor y = random_tensor(40, random_);
    y[0] = y[33] = std::nanf("");
    backend->relu_forward(y);
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[33])) << backend->name();
  }
}

TEST_F(OneDnnBackend, UseOfOneShapeDoesNotDisturbAnother) {
  for (int round = 0; round < 2; ++round) {
    expect_dense_agrees({4, 20, 10}, true);
    expect_dense_agrees({5, 20, 10}, true);
    expect_conv_agrees({2, 8, 8, 16, 16, 3}, true);
    expect_conv_agrees({3, 8, 8, 16, 16, 3}, true);
  }
}

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST_F(OneDnnBackend, StartsNoThreads) {
  // In a new thread, which OpenMP has no pool of helpers for yet.
  std::jthread([this] {
    const std::ptrdiff_t before = threads_of_this_process();
    expect_dense_agrees({64, 128, 128}, true);
    expect_conv_agrees({8, 12, 12, 32, 64, 5}, true);
    EXPECT_EQ(threads_of_this_process(), before);
  }).join();
}

TEST_F(OneDnnBackend, WorksInAnotherThreadThanTheOneThatMadeIt) {
  std::jthread([this] { expect_dense_agrees({16, 64, 64}, true); }).join();
}

}  // namespace
}  // namespace syncopate::worker
