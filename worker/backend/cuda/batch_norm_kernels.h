// Batch normalization of a matrix (rows, channels) by our own kernels: cuDNN's mode for innermost channels is not
// always deterministic, and its backward has no relu. Training takes two launches each way: one folds the rows
// (column_fold.h, which says why so), the other is applied to each element. All sum in an order that depends only on
// the shape. Each function enqueues its work on `stream` and returns the result of its launches.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "worker/backend/cuda/fold_space.h"

namespace syncopate::worker {

// Like BatchNormShape.
struct BatchNormRows {
  std::size_t rows;
  int channels;
  bool relu, residual;
};

// Pointers to `channels` floats each.
struct BatchNormScale {
  const float* scale;
  const float* shift;
};
struct BatchNormMoments {
  float* mean;
  float* inverse_deviation;
};
struct BatchNormRunning {
  float* mean;
  float* variance;
};

// Like the operations of ComputeBackend. A null residual is none.
cudaError_t launch_batch_norm_forward(const BatchNormRows& shape, const float* x, const BatchNormScale& learnt,
                                      const BatchNormMoments& batch, const BatchNormRunning& running,
                                      const float* residual, float* y, const FoldSpace& space, cudaStream_t stream);
// A null dx is not computed.
cudaError_t launch_batch_norm_backward(const BatchNormRows& shape, const float* x, const BatchNormScale& learnt,
                                       const BatchNormMoments& batch, const float* y, float* dy, float* dscale,
                                       float* dshift, float* dx, const FoldSpace& space, cudaStream_t stream);
cudaError_t launch_batch_norm_inference(const BatchNormRows& shape, const float* x, const BatchNormScale& learnt,
                                        const BatchNormRunning& running, const float* residual, float* y,
                                        cudaStream_t stream);

}  // namespace syncopate::worker
