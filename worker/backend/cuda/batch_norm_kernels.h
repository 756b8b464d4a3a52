// Batch normalization of a matrix (rows, channels) by our own kernels: cuDNN's mode for innermost channels is not
// always deterministic, and its backward has no relu. Training takes two launches each way: one folds the rows
// (column_fold.h, which says why so), the other is applied to each element. All sum in an order that depends only on
// the shape. Each function enqueues its work on `stream` and returns the result of its launches.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "worker/backend/compute_backend.h"
#include "worker/backend/cuda/fold_space.h"

namespace syncopate::worker {

// Like BatchNormShape.
struct BatchNormRows {
  std::size_t rows;
  int channels;
  bool relu, residual;
};

struct BatchNormScale {
  In scale, shift;
};
// Pointers to `channels` floats each.
struct BatchNormMoments {
  float* mean;
  float* inverse_deviation;
};
struct BatchNormRunning {
  float* mean;
  float* variance;
};
// dscale and dshift before they are rounded, which dx is computed from.
struct BatchNormSums {
  float* scale;
  float* shift;
};

// Like the operations of ComputeBackend.
cudaError_t launch_batch_norm_forward(const BatchNormRows& shape, In x, const BatchNormScale& learnt,
                                      const BatchNormMoments& batch, const BatchNormRunning& running, In residual,
                                      Out y, const FoldSpace& space, cudaStream_t stream);
// `exact` is overwritten.
cudaError_t launch_batch_norm_backward(const BatchNormRows& shape, In x, const BatchNormScale& learnt,
                                       const BatchNormMoments& batch, In y, Out dy, const BatchNormSums& exact,
                                       Out dscale, Out dshift, Out dx, const FoldSpace& space, cudaStream_t stream);
cudaError_t launch_batch_norm_inference(const BatchNormRows& shape, In x, const BatchNormScale& learnt,
                                        const BatchNormRunning& running, In residual, Out y, cudaStream_t stream);

}  // namespace syncopate::worker
