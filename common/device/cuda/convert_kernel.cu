#include <algorithm>
#include <cstddef>

#include "common/device/cuda/convert_kernel.h"
#include "common/device/cuda/element_types.h"

namespace syncopate {
namespace {

constexpr unsigned kConvertThreads = 256;  // a block
constexpr std::size_t kMostConvertBlocks = 4096;

template <typename From, typename To>
__global__ void convert(const From* __restrict__ x, To* __restrict__ y, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    y[i] = from_float<To>(to_float(x[i]));
  }
}

}  // namespace

cudaError_t launch_convert(ConstTensorSpan x, TensorSpan y, cudaStream_t stream) {
  if (x.empty()) return cudaSuccess;
  const std::size_t blocks = std::min((x.size() + kConvertThreads - 1) / kConvertThreads, kMostConvertBlocks);
  return with_element(x.type(), [&]<typename From>(From) {
    return with_element(y.type(), [&]<typename To>(To) {
      convert<From, To>
          <<<static_cast<unsigned>(blocks), kConvertThreads, 0, stream>>>(elements<From>(x), elements<To>(y), x.size());
      return cudaGetLastError();
    });
  });
}

}  // namespace syncopate
