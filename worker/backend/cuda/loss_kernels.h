// Softmax and cross-entropy, summed in an order that depends on the shape alone.
#pragma once

#include <cuda_runtime_api.h>

namespace syncopate::worker {

// What the kernel leaves in device memory.
struct LossRecord {
  double loss;  // mean over the batch
  int correct;  // samples whose largest logit, the first of equals, is their label's
};

// Of one sample.
struct SampleLoss {
  float loss;
  int correct;
};

// As ComputeBackend's; `dlogits` may be null. `samples` is room for `batch` of them. All on the device. Gives its work
// to `stream` and returns what its launches returned. `batch` is at least 1.
cudaError_t launch_softmax_cross_entropy(int batch, int classes, const float* logits, const int* labels, float* dlogits,
                                         SampleLoss* samples, LossRecord* record, cudaStream_t stream);

}  // namespace syncopate::worker
