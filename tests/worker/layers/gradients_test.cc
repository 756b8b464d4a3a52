// Every layer's gradients against central finite differences, on the plain loops.
#include <gtest/gtest.h>

#include "tests/worker/tensor_helpers.h"
#include "worker/layers/conv2d.h"
#include "worker/layers/dense.h"
#include "worker/layers/flatten.h"
#include "worker/layers/max_pool.h"
#include "worker/layers/relu.h"

namespace syncopate::worker {
namespace {

// A loss that is linear in a layer's outputs, so that only the layer itself can bend it: sum of direction · output.
class LayerUnderTest {
 public:
  LayerUnderTest(Layer& layer, Tensor weights, Tensor input, Random& random)
      : layer_(layer), weights_(std::move(weights)), input_(std::move(input)) {
    direction_ = random_tensor(static_cast<int>(layer.output_values()) * kBatch, random);
  }

  static constexpr int kBatch = 3;

  double loss() {
    const Tensor output = forward();
    double sum = 0;
    for (std::size_t i = 0; i < output.size(); ++i) sum += static_cast<double>(direction_[i]) * output[i];
    return sum;
  }

  void expect_gradients_are_slopes(double epsilon) {
    Tensor output = forward();
    Tensor arena_gradients = poisoned(static_cast<int>(weights_.size()));
    Tensor output_gradient = direction_;
    Tensor input_gradient = poisoned(static_cast<int>(input_.size()));
    const Out input_span = layer_.in_place() ? Out(output_gradient) : Out(input_gradient);
    layer_.backward(weights_, {input_, output}, {output_gradient, input_span}, arena_gradients,
                    [this](std::size_t tensor) { reported_.push_back(tensor); });
    expect_slopes(input_, input_span, epsilon, "input");
    expect_slopes(weights_, arena_gradients, epsilon, "weights");
  }

  const std::vector<std::size_t>& reported() const { return reported_; }

 private:
  Tensor forward() {
    Tensor output = layer_.in_place() ? input_ : poisoned(static_cast<int>(layer_.output_values()) * kBatch);
    layer_.forward(weights_, {layer_.in_place() ? In(output) : In(input_), output});
    return output;
  }

  void expect_slopes(Tensor& variables, In gradients, double epsilon, const char* what) {
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (std::isnan(gradients[i]) && variables[i] == 0) continue;  // the arena's padding
      const float before = variables[i];
      const auto loss_at = [&](double value) {
        variables[i] = static_cast<float>(value);
        return loss();
      };
      const double slope = (loss_at(before + epsilon) - loss_at(before - epsilon)) / (2 * epsilon);
      variables[i] = before;
      ASSERT_NEAR(gradients[i], slope, 1e-4 * std::max(1.0, std::abs(slope))) << what << " " << i;
    }
  }

  Layer& layer_;
  Tensor weights_;
  Tensor input_;
  Tensor direction_;
  std::vector<std::size_t> reported_;
};

class Gradients : public testing::Test {
 protected:
  static constexpr int kBatch = LayerUnderTest::kBatch;

  // Random weights, biases too, with zero padding.
  Tensor random_arena(const ParamLayout& layout) {
    Tensor arena(layout.size());
    for (const TensorSpec& tensor : layout.tensors()) {
      std::ranges::copy(random_tensor(static_cast<int>(tensor.range.size()), random_),
                        arena.begin() + static_cast<std::ptrdiff_t>(tensor.range.begin));
    }
    return arena;
  }

  // Shuffled values 0.05 apart and none at zero, so that no small step changes who is largest or positive.
  Tensor distinct_tensor(int count) {
    Tensor values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = 0.05f * (static_cast<float>(i) - static_cast<float>(count / 2) + 0.5f);
      std::swap(values[i], values[random_.below(i + 1)]);
    }
    return values;
  }

  Random random_{11};
  std::unique_ptr<ComputeBackend> backend_ = make_reference_backend();
  ParamLayout layout_;
};

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
  Conv2d conv(*backend_, {kBatch, 6, 5, 2, 3, 3}, "conv", layout_);
  LayerUnderTest test(conv, random_arena(layout_), random_tensor(kBatch * 6 * 5 * 2, random_), random_);
  test.expect_gradients_are_slopes(0.1);
  EXPECT_EQ(test.reported(), (std::vector<std::size_t>{1, 0}));
}

TEST_F(Gradients, OfReluAreSlopes) {
  Relu relu(*backend_, 20);
  LayerUnderTest(relu, {}, distinct_tensor(kBatch * 20), random_).expect_gradients_are_slopes(0.01);
}

TEST_F(Gradients, OfMaxPoolAreSlopes) {
  MaxPool pool(*backend_, {kBatch, 5, 4, 3, 2});
  LayerUnderTest(pool, {}, distinct_tensor(kBatch * 5 * 4 * 3), random_).expect_gradients_are_slopes(0.01);
}

TEST_F(Gradients, OfFlattenAreSlopes) {
  Flatten flatten(12);
  LayerUnderTest(flatten, {}, random_tensor(kBatch * 12, random_), random_).expect_gradients_are_slopes(0.1);
}

TEST_F(Gradients, OfSoftmaxCrossEntropyAreSlopesOfTheMeanLoss) {
  Tensor logits = random_tensor(kBatch * 5, random_), gradient = poisoned(kBatch * 5), unused = gradient;
  const std::vector<int> labels{4, 0, 2};
  backend_->softmax_cross_entropy(kBatch, 5, logits, labels, gradient);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float before = logits[i];
    const auto loss_at = [&](float value) {
      logits[i] = value;
      backend_->softmax_cross_entropy(kBatch, 5, logits, labels, unused);
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
  expect_close(Out(without).first(35), Out(with).first(35), 0, "weight gradient");
}

}  // namespace
}  // namespace syncopate::worker
