// A layer alone, with random weights and input: its gradients against central finite differences, on the plain loops.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/worker/tensor_helpers.h"
#include "worker/layers/layer.h"

namespace syncopate::worker {

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

  // Central differences over `epsilon`, within `tolerance` of a slope (and of 1).
  void expect_gradients_are_slopes(double epsilon, double tolerance = 1e-4) {
    Tensor output = forward();
    Tensor arena_gradients = poisoned(static_cast<int>(weights_.size()));
    Tensor output_gradient = direction_;
    Tensor input_gradient = poisoned(static_cast<int>(input_.size()));
    const Out input_span = layer_.in_place() ? Out(output_gradient) : Out(input_gradient);
    layer_.backward(weights_, {input_, output}, {output_gradient, input_span}, arena_gradients,
                    [this](std::size_t tensor) { reported_.push_back(tensor); });
    expect_slopes(input_, input_span, epsilon, tolerance, "input");
    expect_slopes(weights_, arena_gradients, epsilon, tolerance, "weights");
  }

  const std::vector<std::size_t>& reported() const { return reported_; }

 private:
  Tensor forward() {
    Tensor output = layer_.in_place() ? input_ : poisoned(static_cast<int>(layer_.output_values()) * kBatch);
    layer_.forward(weights_, {layer_.in_place() ? In(output) : In(input_), output});
    return output;
  }

  void expect_slopes(Tensor& variables, In gradients, double epsilon, double tolerance, const char* what) {
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (std::isnan(gradients[i]) && variables[i] == 0) continue;  // the arena's padding
      const float before = variables[i];
      const auto loss_at = [&](double value) {
        variables[i] = static_cast<float>(value);
        return loss();
      };
      const double slope = (loss_at(before + epsilon) - loss_at(before - epsilon)) / (2 * epsilon);
      variables[i] = before;
      ASSERT_NEAR(gradients[i], slope, tolerance * std::max(1.0, std::abs(slope))) << what << " " << i;
    }
  }

  Layer& layer_;
  Tensor weights_;
  Tensor input_;
  Tensor direction_;
  std::vector<std::size_t> reported_;
};

class LayerTest : public testing::Test {
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

}  // namespace syncopate::worker
