// Global mean pooling and subsampling of (batch, height, width, channels) images. Each function enqueues its work on
// `stream` and returns the result of its launch.
#pragma once

#include <cuda_runtime_api.h>

#include "worker/backend/compute_backend.h"

namespace syncopate::worker {

cudaError_t launch_mean_pool_forward(const MeanPoolShape& shape, const float* x, float* y, cudaStream_t stream);
cudaError_t launch_mean_pool_backward(const MeanPoolShape& shape, const float* dy, float* dx, cudaStream_t stream);

cudaError_t launch_subsample_forward(const SubsampleShape& shape, const float* x, float* y, cudaStream_t stream);
cudaError_t launch_subsample_backward(const SubsampleShape& shape, const float* dy, float* dx, cudaStream_t stream);

}  // namespace syncopate::worker
