#include "worker/layers/affine.h"

#include <algorithm>
#include <cmath>

namespace syncopate::worker {
namespace {

double limit_of(Initialization initialization, double fan_in, double fan_out) {
  switch (initialization) {
    case Initialization::kHeUniform:
      return std::sqrt(6.0 / fan_in);
    case Initialization::kLeCunUniform:
      return std::sqrt(3.0 / fan_in);
    case Initialization::kGlorotUniform:
      return std::sqrt(6.0 / (fan_in + fan_out));
  }
  return 0;
}

}  // namespace

AffineParams::AffineParams(ParamLayout& layout, const std::string& name, const std::vector<std::int64_t>& weight_shape,
                           Initialization initialization, bool with_bias, const WeightSplit& split)
    : index_(layout.tensors().size()), share_(weight_shape, split) {
  layout.add(name + ".weight", share_.own());
  const std::int64_t outputs = weight_shape.front();
  if (with_bias) layout.add(name + ".bias", TensorShare({outputs}, split).own());
  weight_ = layout.tensors()[index_].range;
  bias_ = with_bias ? layout.tensors()[index_ + 1].range : Range{weight_.end, weight_.end};
  double size = 1;
  for (const std::int64_t dimension : weight_shape) size *= static_cast<double>(dimension);
  limit_ =
      limit_of(initialization, size / static_cast<double>(outputs), size / static_cast<double>(weight_shape.back()));
}

AffineParams::AffineParams(ParamLayout& layout, const std::string& name, const std::vector<std::int64_t>& weight_shape,
                           NormalInitialization initialization, bool with_bias, const WeightSplit& split)
    : AffineParams(layout, name, weight_shape, Initialization::kLeCunUniform, with_bias, split) {
  normal_ = initialization;
}

void AffineParams::initialize(std::uint64_t seed, std::span<float> arena) const {
  Random random(seed, index_);
  const auto draw = [&] {
    return static_cast<float>(normal_ ? normal_->deviation * random.normal() : random.uniform(-limit_, limit_));
  };
  std::size_t drawn = 0;  // of the whole tensor
  share_.for_each([&](const TensorShare::Stretch& stretch) {
    for (; drawn < stretch.begin; ++drawn) draw();
    for (float& value : weight(arena).subspan(stretch.at, stretch.size)) value = draw();
    drawn += stretch.size;
  });
  std::ranges::fill(bias(arena), 0.0f);
}

}  // namespace syncopate::worker
