// Causal self-attention by oneDNN's matrix products, one head of one text at a time: a head's data stays in the cache
// from one product to the next, and queries, keys and values are used in place.
#pragma once

#include <dnnl.hpp>

#include "common/os/aligned_buffer.h"
#include "worker/backend/compute_backend.h"

namespace syncopate::worker {

class OneDnnAttention {
 public:
  OneDnnAttention(const AttentionShape& shape, const dnnl::engine& engine);

  const AttentionShape& shape() const { return shape_; }

  // As in ComputeBackend.
  void forward(In qkv, Out y, Out probabilities);
  void backward(In qkv, In dy, Out probabilities, Out dqkv);

 private:
  AttentionShape shape_;
  AlignedBuffer score_gradients_;  // (T, T), of the current head
};

}  // namespace syncopate::worker
