// Softmax and cross-entropy, and squared error, summed in an order that depends only on the shape.
#pragma once

#include <cuda_runtime_api.h>

namespace syncopate::worker {

// The result that the kernel writes to device memory.
struct LossRecord {
  double loss;  // mean over the batch
  int correct;  // samples whose largest logit, the first among equals, is that of their label
};

// The result for one sample.
struct SampleLoss {
  float loss;
  int correct;
};

// Like ComputeBackend's; `dlogits` may be null. `samples` has room for `batch` of them. All pointers are to device
// memory. Enqueues its work on `stream` and returns the result of its launches. `batch` is at least 1.
cudaError_t launch_softmax_cross_entropy(int batch, int classes, const float* logits, const int* labels, float* dlogits,
                                         SampleLoss* samples, LossRecord* record, cudaStream_t stream);

// The same for the squared error of one output a sample.
cudaError_t launch_squared_error(int batch, const float* outputs, const float* targets, float* doutputs,
                                 SampleLoss* samples, LossRecord* record, cudaStream_t stream);

}  // namespace syncopate::worker
