// Softmax and cross-entropy, and squared error, summed in an order that depends only on the shape.
#pragma once

#include <cuda_runtime_api.h>

#include "worker/backend/compute_backend.h"

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

// Like ComputeBackend's; `dlogits`, of the logits' type, may be empty, and is multiplied by *factor, unless that is
// null, before it is rounded. `samples` has room for `batch` of them. All is in device memory. Enqueues its work on
// `stream` and returns the result of its launches. `batch` is at least 1.
cudaError_t launch_softmax_cross_entropy(int batch, int classes, In logits, const int* labels, const float* factor,
                                         Out dlogits, SampleLoss* samples, LossRecord* record, cudaStream_t stream);

// The same for the squared error of one output a sample.
cudaError_t launch_squared_error(int batch, In outputs, const float* targets, const float* factor, Out doutputs,
                                 SampleLoss* samples, LossRecord* record, cudaStream_t stream);

}  // namespace syncopate::worker
