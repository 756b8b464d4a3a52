// Kernels of causal self-attention, as in ComputeBackend, by tiles in shared memory: forward keeps no probabilities
// (Dao et al. 2022, "FlashAttention: fast and memory-efficient exact attention with IO-awareness", algorithm 1), and
// backward computes them again, one launch for the queries and one for keys and values (Dao 2023, "FlashAttention-2",
// section 3.1), so that no block adds to what another writes: the bits are always the same. They multiply in float32
// whatever the tensors' type. Any width of a head will do; where it is above 64, so many blocks share a tile's
// columns, and each of them computes the scores.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "worker/backend/compute_backend.h"

namespace syncopate::worker {

// The tensors of one call are of one type. `storage` has AttentionShape::row_statistics() floats: for each query of
// each head, (B, H, T), the logarithm of the sum of its scores' exponentials, and as much room for backward.

cudaError_t launch_attention_forward(const AttentionShape& shape, In qkv, Out y, float* storage, cudaStream_t stream);
cudaError_t launch_attention_backward(const AttentionShape& shape, In qkv, In y, In dy, float* storage, Out dqkv,
                                      cudaStream_t stream);

}  // namespace syncopate::worker
