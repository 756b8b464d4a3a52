// Global mean pooling and subsampling of (batch, height, width, channels) images. Each function enqueues its work on
// `stream` and returns the result of its launch. The tensors of one call are of one type.
#pragma once

#include <cuda_runtime_api.h>

#include "worker/backend/compute_backend.h"

namespace syncopate::worker {

cudaError_t launch_mean_pool_forward(const MeanPoolShape& shape, In x, Out y, cudaStream_t stream);
cudaError_t launch_mean_pool_backward(const MeanPoolShape& shape, In dy, Out dx, cudaStream_t stream);

cudaError_t launch_subsample_forward(const SubsampleShape& shape, In x, Out y, cudaStream_t stream);
cudaError_t launch_subsample_backward(const SubsampleShape& shape, In dy, Out dx, cudaStream_t stream);

}  // namespace syncopate::worker
