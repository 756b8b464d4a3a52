// Max-pooling of (batch, height, width, channels) images. These are our own kernels, since ComputeBackend needs the
// index of the largest element in its window (the first among equals), which cuDNN does not return.
#pragma once

#include <cuda_runtime_api.h>

#include "worker/backend/compute_backend.h"

namespace syncopate::worker {

// Like ComputeBackend's. Each function enqueues its work on `stream` and returns the result of its launch. The images
// of a batch must have fewer than 2^31 values in all. The result is the same every time: nothing is added atomically.
cudaError_t launch_max_pool_forward(const PoolShape& shape, In x, Out y, unsigned char* index, cudaStream_t stream);
cudaError_t launch_max_pool_backward(const PoolShape& shape, In dy, const unsigned char* index, Out dx,
                                     cudaStream_t stream);

}  // namespace syncopate::worker
