#include <climits>
#include <cmath>
#include <cstddef>

#include "worker/backend/cuda/loss_kernels.h"

namespace syncopate::worker {
namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kAll = 0xffffffffu;
constexpr unsigned kRowsABlock = 4;     // one warp a row
constexpr unsigned kMeanThreads = 256;  // a power of two

struct Largest {
  float value;
  int index;
};

// The larger one; of equals, the first.
__device__ Largest better(Largest a, Largest b) {
  return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}

// Every lane leaves with the best of all lanes; likewise with the sum.
__device__ Largest warp_best(Largest mine) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    const Largest other{__shfl_xor_sync(kAll, mine.value, distance), __shfl_xor_sync(kAll, mine.index, distance)};
    mine = better(mine, other);
  }
  return mine;
}
__device__ float warp_sum(float mine) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) mine += __shfl_xor_sync(kAll, mine, distance);
  return mine;
}

__global__ void softmax_cross_entropy(int batch, int classes, const float* __restrict__ logits,
                                      const int* __restrict__ labels, float* __restrict__ dlogits,
                                      SampleLoss* __restrict__ samples) {
  const int row = static_cast<int>(blockIdx.x * kRowsABlock + threadIdx.y);
  if (row >= batch) return;  // a whole warp
  const int lane = static_cast<int>(threadIdx.x);
  const float* const logit = logits + static_cast<std::size_t>(row) * classes;
  const int label = labels[row];

  Largest largest{-INFINITY, INT_MAX};
  for (int c = lane; c < classes; c += kWarp) largest = better(largest, {logit[c], c});
  largest = warp_best(largest);

  float sum = 0;
  for (int c = lane; c < classes; c += kWarp) sum += expf(logit[c] - largest.value);
  sum = warp_sum(sum);

  if (dlogits != nullptr) {
    float* const gradient = dlogits + static_cast<std::size_t>(row) * classes;
    const float samples_in_batch = static_cast<float>(batch);
    for (int c = lane; c < classes; c += kWarp) {
      const float probability = expf(logit[c] - largest.value) / sum;
      gradient[c] = (probability - (c == label ? 1.0f : 0.0f)) / samples_in_batch;
    }
  }
  if (lane == 0) {
    samples[row].loss = logf(sum) - (logit[label] - largest.value);
    samples[row].correct = largest.index == label ? 1 : 0;
  }
}

__global__ void squared_error(int batch, const float* __restrict__ outputs, const float* __restrict__ targets,
                              float* __restrict__ doutputs, SampleLoss* __restrict__ samples) {
  const int sample = static_cast<int>(blockIdx.x * kMeanThreads + threadIdx.x);
  if (sample >= batch) return;
  const float error = outputs[sample] - targets[sample];
  if (doutputs != nullptr) doutputs[sample] = 2 * error / static_cast<float>(batch);
  samples[sample] = {error * error, 0};
}

// One block.
__global__ void mean_loss(int batch, const SampleLoss* __restrict__ samples, LossRecord* __restrict__ record) {
  __shared__ double losses[kMeanThreads];
  __shared__ int corrects[kMeanThreads];
  double loss = 0;
  int correct = 0;
  for (int i = static_cast<int>(threadIdx.x); i < batch; i += kMeanThreads) {
    loss += samples[i].loss;
    correct += samples[i].correct;
  }
  losses[threadIdx.x] = loss;
  corrects[threadIdx.x] = correct;
  for (unsigned half = kMeanThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      losses[threadIdx.x] += losses[threadIdx.x + half];
      corrects[threadIdx.x] += corrects[threadIdx.x + half];
    }
  }
  if (threadIdx.x == 0) *record = {losses[0] / batch, corrects[0]};
}

}  // namespace

cudaError_t launch_softmax_cross_entropy(int batch, int classes, const float* logits, const int* labels, float* dlogits,
                                         SampleLoss* samples, LossRecord* record, cudaStream_t stream) {
  const unsigned blocks = (static_cast<unsigned>(batch) + kRowsABlock - 1) / kRowsABlock;
  softmax_cross_entropy<<<blocks, dim3(kWarp, kRowsABlock), 0, stream>>>(batch, classes, logits, labels, dlogits,
                                                                         samples);
  const cudaError_t first = cudaGetLastError();
  if (first != cudaSuccess) return first;
  mean_loss<<<1, kMeanThreads, 0, stream>>>(batch, samples, record);
  return cudaGetLastError();
}

cudaError_t launch_squared_error(int batch, const float* outputs, const float* targets, float* doutputs,
                                 SampleLoss* samples, LossRecord* record, cudaStream_t stream) {
  const unsigned blocks = (static_cast<unsigned>(batch) + kMeanThreads - 1) / kMeanThreads;
  squared_error<<<blocks, kMeanThreads, 0, stream>>>(batch, outputs, targets, doutputs, samples);
  const cudaError_t first = cudaGetLastError();
  if (first != cudaSuccess) return first;
  mean_loss<<<1, kMeanThreads, 0, stream>>>(batch, samples, record);
  return cudaGetLastError();
}

}  // namespace syncopate::worker
