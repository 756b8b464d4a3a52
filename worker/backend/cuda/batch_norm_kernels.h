// Batch normalization of a matrix (rows, channels) by kernels of our own: what cuDNN offers for channels that lie
// innermost is not deterministic in every mode, and its backward has no relu. All sum in an order that depends on the
// shape alone. Each gives its work to `stream` and returns what its launches returned.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

namespace syncopate::worker {

// As BatchNormShape.
struct BatchNormRows {
  std::size_t rows;
  int channels;
  bool relu;
};

// Pointers are to `channels` floats each.
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

// As ComputeBackend's. `workspace` is device memory for sums of parts; the less, the fewer parts, but at least for one:
// two floats a channel.
cudaError_t launch_batch_norm_forward(const BatchNormRows& shape, const float* x, const BatchNormScale& learnt,
                                      const BatchNormMoments& batch, const BatchNormRunning& running, float* y,
                                      std::span<std::byte> workspace, cudaStream_t stream);
// A null dx is not computed.
cudaError_t launch_batch_norm_backward(const BatchNormRows& shape, const float* x, const BatchNormScale& learnt,
                                       const BatchNormMoments& batch, const float* dy, float* dscale, float* dshift,
                                       float* dx, std::span<std::byte> workspace, cudaStream_t stream);
cudaError_t launch_batch_norm_inference(const BatchNormRows& shape, const float* x, const BatchNormScale& learnt,
                                        const BatchNormRunning& running, float* y, cudaStream_t stream);

}  // namespace syncopate::worker
