#include <cuda_runtime.h>

#include <algorithm>

#include "common/device/cuda/update_kernels.h"
#include "common/optimizer/update_rule.h"

namespace syncopate {
namespace {

using update_rule::UpdateConstants;

constexpr unsigned kThreads = 256;  // a block
// Enough to fill the largest GPUs several times over; what is left, each thread does in further rounds.
constexpr std::size_t kMostBlocks = 4096;

// Neighbouring threads take neighbouring elements, so that each access of a warp is one piece of memory.
template <typename Body>
__device__ __forceinline__ void for_each_element(std::size_t count, const Body& body) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) body(i);
}

__global__ void __launch_bounds__(kThreads) sgd_kernel(float* __restrict__ w, const float* __restrict__ g,
                                                       std::size_t count, const UpdateConstants* __restrict__ of_step) {
  for_each_element(count, [=, c = of_step->momentum](std::size_t i) { update_rule::sgd(w[i], g[i], c); });
}

template <bool kNesterov>
__global__ void __launch_bounds__(kThreads)
    momentum_kernel(float* __restrict__ w, const float* __restrict__ g, float* __restrict__ velocity, std::size_t count,
                    const UpdateConstants* __restrict__ of_step) {
  for_each_element(count, [=, c = of_step->momentum](std::size_t i) {
    update_rule::momentum<kNesterov>(w[i], g[i], velocity[i], c);
  });
}

__global__ void __launch_bounds__(kThreads)
    adam_kernel(float* __restrict__ w, const float* __restrict__ g, float* __restrict__ m, float* __restrict__ v,
                std::size_t count, const UpdateConstants* __restrict__ of_step) {
  for_each_element(count, [=, c = of_step->adam](std::size_t i) { update_rule::adam(w[i], g[i], m[i], v[i], c); });
}

__global__ void __launch_bounds__(kThreads)
    adagrad_kernel(float* __restrict__ w, const float* __restrict__ g, float* __restrict__ squares, std::size_t count,
                   const UpdateConstants* __restrict__ of_step) {
  for_each_element(count,
                   [=, c = of_step->adagrad](std::size_t i) { update_rule::adagrad(w[i], g[i], squares[i], c); });
}

__global__ void __launch_bounds__(kThreads)
    ftrl_kernel(float* __restrict__ w, const float* __restrict__ g, float* __restrict__ z, float* __restrict__ squares,
                std::size_t count, const UpdateConstants* __restrict__ of_step) {
  for_each_element(count,
                   [=, c = of_step->ftrl](std::size_t i) { update_rule::ftrl(w[i], g[i], z[i], squares[i], c); });
}

template <typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), std::size_t count, cudaStream_t stream, Arguments... arguments) {
  const std::size_t blocks = std::min((count + kThreads - 1) / kThreads, kMostBlocks);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace

cudaError_t launch_update(const OptimizerConfig& rule, const UpdateConstants* constants, const UpdateOperands& operands,
                          cudaStream_t stream) {
  const auto& [w, g, first, second, n] = operands;
  switch (rule.kind) {
    case OptimizerKind::kSgd:
      return launch(sgd_kernel, n, stream, w, g, n, constants);
    case OptimizerKind::kMomentum:
      return launch(rule.nesterov ? momentum_kernel<true> : momentum_kernel<false>, n, stream, w, g, first, n,
                    constants);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return launch(adam_kernel, n, stream, w, g, first, second, n, constants);
    case OptimizerKind::kAdagrad:
      return launch(adagrad_kernel, n, stream, w, g, first, n, constants);
    case OptimizerKind::kFtrl:
      return launch(ftrl_kernel, n, stream, w, g, first, second, n, constants);
  }
  return cudaErrorInvalidValue;
}

cudaError_t load_update_kernels() {
  const void* const kernels[] = {reinterpret_cast<const void*>(sgd_kernel),
                                 reinterpret_cast<const void*>(momentum_kernel<false>),
                                 reinterpret_cast<const void*>(momentum_kernel<true>),
                                 reinterpret_cast<const void*>(adam_kernel),
                                 reinterpret_cast<const void*>(adagrad_kernel),
                                 reinterpret_cast<const void*>(ftrl_kernel)};
  for (const void* kernel : kernels) {
    cudaFuncAttributes attributes;
    if (const cudaError_t result = cudaFuncGetAttributes(&attributes, kernel); result != cudaSuccess) return result;
  }
  return cudaSuccess;
}

}  // namespace syncopate
