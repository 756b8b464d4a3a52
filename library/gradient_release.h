// GradientRelease: autograd finishes gradients in an order of its own, which may differ between ranks and from step to
// step; buckets must leave in one order everywhere. So a bucket is released once all of its tensors and all buckets
// before it are ready. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "common/param_layout.h"

namespace syncopate::library {

class GradientRelease {
 public:
  // `buckets` cover the layout's arena, in the order in which they are released. A bucket may hold several tensors, or
  // a part of one.
  GradientRelease(const ParamLayout& layout, const std::vector<Range>& buckets);

  void begin();
  bool is_ready(std::size_t tensor) const { return ready_[tensor]; }
  // Whether all buckets have been released.
  bool done() const { return next_ == tensors_of_.size(); }
  // The buckets of a tensor, ascending.
  const std::vector<std::size_t>& buckets_of(std::size_t tensor) const { return buckets_of_[tensor]; }
  // The tensors of a bucket, ascending.
  const std::vector<std::size_t>& tensors_of(std::size_t bucket) const { return tensors_of_[bucket]; }

  // The gradient of `tensor`, which was not ready, is final. Calls release(bucket) for each bucket that may leave now.
  template <typename Release>
  void ready(std::size_t tensor, Release&& release) {
    ready_[tensor] = true;
    for (const std::size_t bucket : buckets_of_[tensor]) --missing_[bucket];
    while (next_ < missing_.size() && missing_[next_] == 0) release(next_++);
  }

 private:
  std::vector<std::vector<std::size_t>> tensors_of_;  // by bucket
  std::vector<std::vector<std::size_t>> buckets_of_;  // by tensor
  std::vector<std::size_t> missing_;                  // tensors, by bucket
  std::vector<bool> ready_;                           // by tensor
  std::size_t next_ = 0;
};

}  // namespace syncopate::library
