// Max-pooling of (batch, height, width, channels) images. These are our own kernels, since ComputeBackend needs the
// index of the largest element in its window (the first among equals), which cuDNN does not return.
#pragma once

#include <cuda_runtime_api.h>

namespace syncopate::worker {

// Like PoolShape: windows of size x size, with stride `size`; a remainder at the border is ignored.
struct PoolImages {
  int batch, height, width, channels, size;
};

// Like ComputeBackend's. Each function enqueues its work on `stream` and returns the result of its launch. The images
// of a batch must have fewer than 2^31 values in all.
cudaError_t launch_max_pool_forward(const PoolImages& images, const float* x, float* y, unsigned char* index,
                                    cudaStream_t stream);
cudaError_t launch_max_pool_backward(const PoolImages& images, const float* dy, const unsigned char* index, float* dx,
                                     cudaStream_t stream);

}  // namespace syncopate::worker
