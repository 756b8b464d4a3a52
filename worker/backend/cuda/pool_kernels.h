// Max-pooling of (batch, height, width, channels) images. Kernels of our own, since ComputeBackend asks for the
// winner's place in its window (the first of equals), which cuDNN does not tell.
#pragma once

#include <cuda_runtime_api.h>

namespace syncopate::worker {

// As PoolShape: windows of size x size, stride `size`; a rest at the border is not read.
struct PoolImages {
  int batch, height, width, channels, size;
};

// As ComputeBackend's; each gives its work to `stream` and returns what its launch returned. The images of a batch have
// fewer than 2^31 pixels (of all channels each) together.
cudaError_t launch_max_pool_forward(const PoolImages& images, const float* x, float* y, unsigned char* index,
                                    cudaStream_t stream);
cudaError_t launch_max_pool_backward(const PoolImages& images, const float* dy, const unsigned char* index, float* dx,
                                     cudaStream_t stream);

}  // namespace syncopate::worker
