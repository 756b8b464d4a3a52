// Kernels of causal self-attention, as in ComputeBackend. One warp handles one query, or one key, of one head. They
// multiply in float32 whatever the backend's precision. They are made for the short texts of small models: one lane
// computes each dot product.
#pragma once

#include <cuda_runtime_api.h>

#include "worker/backend/sequence_shapes.h"

namespace syncopate::worker {

cudaError_t launch_attention_forward(const AttentionShape& shape, const float* qkv, float* y, float* probabilities,
                                     cudaStream_t stream);
cudaError_t launch_attention_backward(const AttentionShape& shape, const float* qkv, const float* dy,
                                      float* probabilities, float* dqkv, cudaStream_t stream);

}  // namespace syncopate::worker
