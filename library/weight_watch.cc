#include "library/weight_watch.h"

#include <cstring>

namespace syncopate::library {
namespace {

constexpr std::size_t kKept = 1024;

}  // namespace

WeightWatch::WeightWatch(std::span<const float> weights) : weights_(weights), stride_(weights.size() / kKept + 1) {
  remember();
}

void WeightWatch::remember() {
  first_ = (first_ + 1) % stride_;
  kept_.clear();
  for (std::size_t i = first_; i < weights_.size(); i += stride_) kept_.push_back(weights_[i]);
}

std::optional<std::size_t> WeightWatch::written() const {
  for (std::size_t k = 0; k < kept_.size(); ++k) {
    const std::size_t i = first_ + k * stride_;
    if (std::memcmp(&weights_[i], &kept_[k], sizeof(float)) != 0) return i;
  }
  return std::nullopt;
}

}  // namespace syncopate::library
