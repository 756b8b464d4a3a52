// Kernels of the operations on sequences except attention. Each function enqueues its launch on `stream` and returns at
// once. The contracts are ComputeBackend's, and the order of every sum is always the same. The tensors of one call are
// of one type.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "worker/backend/compute_backend.h"
#include "worker/backend/cuda/fold_space.h"

namespace syncopate::worker {

cudaError_t launch_embedding_forward(const EmbeddingShape& shape, const int* ids, In tokens, In positions, Out y,
                                     cudaStream_t stream);
// Computes the gradient of the tokens only; that of the positions is the column sums of dy(B, T·C). Sorts the rows by
// token, a thousand at a time, so that each token sums its own rows alone, the first ones first: no work grows with the
// product of rows and vocabulary but for a search among each thousand. `workspace` is device memory of
// embedding_workspace() bytes, aligned to 8.
std::size_t embedding_workspace(const EmbeddingShape& shape);
cudaError_t launch_embedding_backward(const EmbeddingShape& shape, const int* ids, In dy, Out dtokens,
                                      std::byte* workspace, cudaStream_t stream);

cudaError_t launch_layer_norm_forward(const LayerNormShape& shape, In x, In gamma, In beta, Out y, float* moments,
                                      cudaStream_t stream);
// An empty residual is none; an empty dx is not computed.
cudaError_t launch_layer_norm_backward(const LayerNormShape& shape, In x, In gamma, const float* moments, In dy,
                                       In residual, Out dgamma, Out dbeta, Out dx, const FoldSpace& space,
                                       cudaStream_t stream);

cudaError_t launch_gelu_forward(In x, Out y, cudaStream_t stream);
cudaError_t launch_gelu_backward(In x, In dy, Out dx, cudaStream_t stream);

}  // namespace syncopate::worker
