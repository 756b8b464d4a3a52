#include <algorithm>
#include <climits>
#include <cmath>
#include <cstddef>

#include "common/device/cuda/element_types.h"
#include "common/device/cuda/tensor_kernels.h"

namespace syncopate {
namespace {

constexpr unsigned kTensorThreads = 256;  // a block

unsigned tensor_blocks(std::size_t count) {
  constexpr std::size_t kMost = 4096;  // loops do the rest
  return static_cast<unsigned>(std::min((count + kTensorThreads - 1) / kTensorThreads, kMost));
}

template <typename From, typename To>
__global__ void convert(const From* __restrict__ x, To* __restrict__ y, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    y[i] = from_float<To>(to_float(x[i]));
  }
}

template <typename Element>
__global__ void look_for_overflow(const Element* __restrict__ gradients, std::size_t count, LossScale* scale) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  bool is_found = false;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    is_found = is_found || !std::isfinite(to_float(gradients[i]));
  }
  if (is_found) atomicInc(&scale->overflowed, UINT_MAX);
}

__global__ void end_scaled_step(LossScale* scale) { scale->end_step(); }

}  // namespace

cudaError_t launch_convert(ConstTensorSpan x, TensorSpan y, cudaStream_t stream) {
  if (x.empty()) return cudaSuccess;
  return with_element(x.type(), [&]<typename From>(From) {
    return with_element(y.type(), [&]<typename To>(To) {
      convert<From, To>
          <<<tensor_blocks(x.size()), kTensorThreads, 0, stream>>>(elements<From>(x), elements<To>(y), x.size());
      return cudaGetLastError();
    });
  });
}

cudaError_t launch_look_for_overflow(ConstTensorSpan gradients, LossScale* scale, cudaStream_t stream) {
  if (gradients.empty()) return cudaSuccess;
  return with_element(gradients.type(), [&]<typename Element>(Element) {
    look_for_overflow<Element><<<tensor_blocks(gradients.size()), kTensorThreads, 0, stream>>>(
        elements<Element>(gradients), gradients.size(), scale);
    return cudaGetLastError();
  });
}

cudaError_t launch_end_scaled_step(LossScale* scale, cudaStream_t stream) {
  end_scaled_step<<<1, 1, 0, stream>>>(scale);
  return cudaGetLastError();
}

}  // namespace syncopate
