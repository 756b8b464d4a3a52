// Kernels of the operations on sequences except attention. Each function enqueues its launch on `stream` and returns at
// once. The contracts are ComputeBackend's, and the order of every sum is always the same.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "worker/backend/cuda/fold_space.h"
#include "worker/backend/sequence_shapes.h"

namespace syncopate::worker {

cudaError_t launch_embedding_forward(const EmbeddingShape& shape, const int* ids, const float* tokens,
                                     const float* positions, float* y, cudaStream_t stream);
// Computes the gradient of the tokens only; that of the positions is the column sums of dy(B, T·C). Sorts the rows by
// token, a thousand at a time, so that each token sums its own rows alone, the first ones first: no work grows with the
// product of rows and vocabulary but for a search among each thousand. `workspace` is device memory of
// embedding_workspace() bytes, aligned to 8.
std::size_t embedding_workspace(const EmbeddingShape& shape);
cudaError_t launch_embedding_backward(const EmbeddingShape& shape, const int* ids, const float* dy, float* dtokens,
                                      std::byte* workspace, cudaStream_t stream);

cudaError_t launch_layer_norm_forward(const LayerNormShape& shape, const float* x, const float* gamma,
                                      const float* beta, float* y, float* moments, cudaStream_t stream);
// A null residual is none; a null dx is not computed.
cudaError_t launch_layer_norm_backward(const LayerNormShape& shape, const float* x, const float* gamma,
                                       const float* moments, const float* dy, const float* residual, float* dgamma,
                                       float* dbeta, float* dx, const FoldSpace& space, cudaStream_t stream);

cudaError_t launch_gelu_forward(const float* x, float* y, std::size_t count, cudaStream_t stream);
cudaError_t launch_gelu_backward(const float* x, const float* dy, float* dx, std::size_t count, cudaStream_t stream);

}  // namespace syncopate::worker
