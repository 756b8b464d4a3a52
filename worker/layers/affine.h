// What dense and convolution layers share: a weight and a bias in the arena, and how they begin.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/param_layout.h"
#include "worker/layers/layer.h"

namespace syncopate::worker {

// He-uniform, U(±sqrt(6 / fan in)), keeps the variance of what a ReLU lets through (He et al. 2015, section 2.2);
// LeCun-uniform, U(±sqrt(3 / fan in)), that of a linear layer (LeCun et al. 1998, section 4.6).
enum class Initialization { kHeUniform, kLeCunUniform };

// N(0, deviation²), without regard to the shape.
struct NormalInitialization {
  double deviation = 0;

  void fill(std::uint64_t seed, std::uint64_t stream, std::span<float> values) const {
    Random random(seed, stream);
    for (float& value : values) value = static_cast<float>(deviation * random.normal());
  }
};

class AffineParams {
 public:
  // Appends `name`.weight, of this shape (outputs first), and, where there is one, `name`.bias to the layout.
  AffineParams(ParamLayout& layout, const std::string& name, const std::vector<std::int64_t>& weight_shape,
               Initialization initialization, bool with_bias = true);
  AffineParams(ParamLayout& layout, const std::string& name, const std::vector<std::int64_t>& weight_shape,
               NormalInitialization initialization);

  // Zero biases; the same seed gives the same weights, whatever other tensors the model has.
  void initialize(std::uint64_t seed, std::span<float> arena) const;

  template <typename T>
  std::span<T> weight(std::span<T> arena) const {
    return slice(arena, weight_);
  }
  template <typename T>
  std::span<T> bias(std::span<T> arena) const {
    return slice(arena, bias_);
  }
  // Weight and bias, which lie side by side.
  Range range() const { return {weight_.begin, bias_.end}; }

  void report(const TensorReady& ready) const {
    if (bias_.size() > 0) ready(index_ + 1);
    ready(index_);
  }

 private:
  std::size_t index_;  // of the weight in the layout; the bias follows
  Range weight_;
  Range bias_;    // empty, behind the weight, where there is none
  double limit_;  // initial weights are uniform in ±limit, unless they are
  std::optional<NormalInitialization> normal_;
};

}  // namespace syncopate::worker
