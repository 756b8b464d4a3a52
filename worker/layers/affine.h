// AffineParams: what dense and convolution layers share: a weight and a bias in the arena, or a worker's share of them,
// and their initialization.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/param_layout.h"
#include "worker/layers/initialization.h"
#include "worker/layers/layer.h"
#include "worker/layers/tensor_share.h"

namespace syncopate::worker {

// N(0, deviation²), independent of the shape.
struct NormalInitialization {
  double deviation = 0;

  void fill(std::uint64_t seed, std::uint64_t stream, std::span<float> values) const {
    Random random(seed, stream);
    for (float& value : values) value = static_cast<float>(deviation * random.normal());
  }
};

class AffineParams {
 public:
  // Appends `name`.weight, of this shape (outputs first, inputs last), and, if there is a bias, `name`.bias to the
  // layout; where they are split, the share of both.
  AffineParams(ParamLayout& layout, const std::string& name, const std::vector<std::int64_t>& weight_shape,
               Initialization initialization, bool with_bias = true, const WeightSplit& split = {});
  AffineParams(ParamLayout& layout, const std::string& name, const std::vector<std::int64_t>& weight_shape,
               NormalInitialization initialization, bool with_bias = true, const WeightSplit& split = {});

  // Sets biases to zero and draws the weights. They depend on the seed, but not on other tensors of the model; those of
  // a share are what they are in the whole tensor.
  void initialize(std::uint64_t seed, std::span<float> arena) const;

  // `arena` is an In or an Out.
  template <typename Tensor>
  Tensor weight(const Tensor& arena) const {
    return slice(arena, weight_);
  }
  template <typename Tensor>
  Tensor bias(const Tensor& arena) const {
    return slice(arena, bias_);
  }
  // The range of weight and bias, which are adjacent.
  Range range() const { return {weight_.begin, bias_.end}; }

  void report(const TensorReady& ready) const {
    if (bias_.size() > 0) ready(index_ + 1);
    ready(index_);
  }

 private:
  std::size_t index_;  // of the weight in the layout; the bias follows
  TensorShare share_;  // of the weight
  Range weight_;
  Range bias_;    // empty, after the weight, if there is none
  double limit_;  // initial weights are uniform in ±limit, unless normal_ is set
  std::optional<NormalInitialization> normal_;
};

}  // namespace syncopate::worker
