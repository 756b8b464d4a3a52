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
                           Initialization initialization, bool with_bias)
    : index_(layout.add(name + ".weight", weight_shape)) {
  const std::int64_t outputs = weight_shape.front();
  if (with_bias) layout.add(name + ".bias", {outputs});
  weight_ = layout.tensors()[index_].range;
  bias_ = with_bias ? layout.tensors()[index_ + 1].range : Range{weight_.end, weight_.end};
  const auto size = static_cast<double>(weight_.size());
  limit_ =
      limit_of(initialization, size / static_cast<double>(outputs), size / static_cast<double>(weight_shape.back()));
}

AffineParams::AffineParams(ParamLayout& layout, const std::string& name, const std::vector<std::int64_t>& weight_shape,
                           NormalInitialization initialization)
    : AffineParams(layout, name, weight_shape, Initialization::kLeCunUniform) {
  normal_ = initialization;
}

void AffineParams::initialize(std::uint64_t seed, std::span<float> arena) const {
  if (normal_) {
    normal_->fill(seed, index_, weight(arena));
  } else {
    Random random(seed, index_);
    for (float& value : weight(arena)) value = static_cast<float>(random.uniform(-limit_, limit_));
  }
  std::ranges::fill(bias(arena), 0.0f);
}

}  // namespace syncopate::worker
