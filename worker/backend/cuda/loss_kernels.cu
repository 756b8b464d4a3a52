#include <climits>
#include <cmath>
#include <cstddef>

#include "common/device/cuda/element_types.h"
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

// What gradients are multiplied by.
__device__ float value_of(const float* factor) { return factor == nullptr ? 1.0f : *factor; }

template <typename T>
__global__ void softmax_cross_entropy(int batch, int classes, const T* __restrict__ logits,
                                      const int* __restrict__ labels, const float* __restrict__ factor,
                                      T* __restrict__ dlogits, SampleLoss* __restrict__ samples) {
  const int row = static_cast<int>(blockIdx.x * kRowsABlock + threadIdx.y);
  if (row >= batch) return;  // a whole warp
  const int lane = static_cast<int>(threadIdx.x);
  const T* const of_row = logits + static_cast<std::size_t>(row) * classes;
  const auto logit = [&](int c) { return to_float(of_row[c]); };
  const int label = labels[row];

  Largest largest{-INFINITY, INT_MAX};
  for (int c = lane; c < classes; c += kWarp) largest = better(largest, {logit(c), c});
  largest = warp_best(largest);

  float sum = 0;
  for (int c = lane; c < classes; c += kWarp) sum += expf(logit(c) - largest.value);
  sum = warp_sum(sum);

  if (dlogits != nullptr) {
    T* const gradient = dlogits + static_cast<std::size_t>(row) * classes;
    const float samples_in_batch = static_cast<float>(batch), scale = value_of(factor);
    for (int c = lane; c < classes; c += kWarp) {
      const float probability = expf(logit(c) - largest.value) / sum;
      gradient[c] = from_float<T>((probability - (c == label ? 1.0f : 0.0f)) / samples_in_batch * scale);
    }
  }
  if (lane == 0) {
    samples[row].loss = logf(sum) - (logit(label) - largest.value);
    samples[row].correct = largest.index == label ? 1 : 0;
  }
}

template <typename T>
__global__ void squared_error(int batch, const T* __restrict__ outputs, const float* __restrict__ targets,
                              const float* __restrict__ factor, T* __restrict__ doutputs,
                              SampleLoss* __restrict__ samples) {
  const int sample = static_cast<int>(blockIdx.x * kMeanThreads + threadIdx.x);
  if (sample >= batch) return;
  const float error = to_float(outputs[sample]) - targets[sample];
  if (doutputs != nullptr) {
    doutputs[sample] = from_float<T>(2 * error / static_cast<float>(batch) * value_of(factor));
  }
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

// Behind the launch of the samples' kernel, whose failure it returns.
cudaError_t launch_mean_loss(int batch, const SampleLoss* samples, LossRecord* record, cudaStream_t stream) {
  const cudaError_t of_samples = cudaGetLastError();
  if (of_samples != cudaSuccess) return of_samples;
  mean_loss<<<1, kMeanThreads, 0, stream>>>(batch, samples, record);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_softmax_cross_entropy(int batch, int classes, In logits, const int* labels, const float* factor,
                                         Out dlogits, SampleLoss* samples, LossRecord* record, cudaStream_t stream) {
  const unsigned blocks = (static_cast<unsigned>(batch) + kRowsABlock - 1) / kRowsABlock;
  return with_element(logits.type(), [&]<typename T>(T) {
    softmax_cross_entropy<T><<<blocks, dim3(kWarp, kRowsABlock), 0, stream>>>(
        batch, classes, elements<T>(logits), labels, factor, elements<T>(dlogits), samples);
    return launch_mean_loss(batch, samples, record, stream);
  });
}

cudaError_t launch_squared_error(int batch, In outputs, const float* targets, const float* factor, Out doutputs,
                                 SampleLoss* samples, LossRecord* record, cudaStream_t stream) {
  const unsigned blocks = (static_cast<unsigned>(batch) + kMeanThreads - 1) / kMeanThreads;
  return with_element(outputs.type(), [&]<typename T>(T) {
    squared_error<T><<<blocks, kMeanThreads, 0, stream>>>(batch, elements<T>(outputs), targets, factor,
                                                          elements<T>(doutputs), samples);
    return launch_mean_loss(batch, samples, record, stream);
  });
}

}  // namespace syncopate::worker
