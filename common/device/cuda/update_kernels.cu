#include <cuda_runtime.h>

#include <algorithm>

#include "common/device/cuda/element_types.h"
#include "common/device/cuda/update_kernels.h"
#include "common/device/loss_scale.h"
#include "common/optimizer/update_rule.h"

namespace syncopate {
namespace {

using update_rule::UpdateConstants;

constexpr unsigned kThreads = 256;  // a block
// Enough to fill the largest GPUs several times over; what is left, each thread does in further rounds.
constexpr std::size_t kMostBlocks = 4096;

// An update's arrays, as kernels see them.
template <typename Element>
struct Operands {
  float* __restrict__ weights;
  const Element* __restrict__ gradient;
  Element* __restrict__ rounded;
  float* __restrict__ first;
  float* __restrict__ second;
  std::size_t count;
  const UpdateConstants* __restrict__ constants;
  const LossScale* __restrict__ scale;
};

struct Sgd {
  __device__ static void apply(float& w, float g, float*, float*, std::size_t, const UpdateConstants& c) {
    update_rule::sgd(w, g, c.momentum);
  }
};

template <bool kNesterov>
struct Momentum {
  __device__ static void apply(float& w, float g, float* velocity, float*, std::size_t i, const UpdateConstants& c) {
    update_rule::momentum<kNesterov>(w, g, velocity[i], c.momentum);
  }
};

struct Adam {
  __device__ static void apply(float& w, float g, float* m, float* v, std::size_t i, const UpdateConstants& c) {
    update_rule::adam(w, g, m[i], v[i], c.adam);
  }
};

struct Adagrad {
  __device__ static void apply(float& w, float g, float* squares, float*, std::size_t i, const UpdateConstants& c) {
    update_rule::adagrad(w, g, squares[i], c.adagrad);
  }
};

struct Ftrl {
  __device__ static void apply(float& w, float g, float* z, float* squares, std::size_t i, const UpdateConstants& c) {
    update_rule::ftrl(w, g, z[i], squares[i], c.ftrl);
  }
};

// Neighbouring threads take neighbouring elements, so that each access of a warp is one piece of memory.
template <typename Rule, typename Element>
__global__ void __launch_bounds__(kThreads) update(Operands<Element> o) {
  if (o.scale != nullptr && o.scale->overflowed != 0) return;
  const float share = o.scale != nullptr ? 1 / o.scale->factor : 1;  // a power of two
  const UpdateConstants constants = o.constants[o.scale != nullptr ? o.scale->choice() : 0];
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < o.count; i += stride) {
    Rule::apply(o.weights[i], to_float(o.gradient[i]) * share, o.first, o.second, i, constants);
    if (o.rounded != nullptr) o.rounded[i] = from_float<Element>(o.weights[i]);
  }
}

template <typename Rule>
cudaError_t launch(const DeviceUpdate& u, cudaStream_t stream) {
  const std::size_t blocks = std::min((u.weights.size() + kThreads - 1) / kThreads, kMostBlocks);
  return with_element(u.gradient.type(), [&]<typename Element>(Element) {
    update<Rule, Element><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
        Operands<Element>{u.weights.data(), elements<Element>(u.gradient), elements<Element>(u.rounded_weights),
                          u.state.first.data(), u.state.second.data(), u.weights.size(), u.constants, u.loss_scale});
    return cudaGetLastError();
  });
}

template <typename Rule, typename... Elements>
cudaError_t load() {
  cudaError_t result = cudaSuccess;
  cudaFuncAttributes attributes;
  const auto load_one = [&](auto* kernel) {
    if (result == cudaSuccess) result = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel));
  };
  (load_one(update<Rule, Elements>), ...);
  return result;
}

// Returns call(Rule()), with the kernel's part that follows the rule.
template <typename Call>
cudaError_t with_rule(const OptimizerConfig& rule, Call call) {
  switch (rule.kind) {
    case OptimizerKind::kSgd:
      return call(Sgd());
    case OptimizerKind::kMomentum:
      return rule.nesterov ? call(Momentum<true>()) : call(Momentum<false>());
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return call(Adam());
    case OptimizerKind::kAdagrad:
      return call(Adagrad());
    case OptimizerKind::kFtrl:
      return call(Ftrl());
    case OptimizerKind::kMean:
      break;  // nobody updates elsewhere than on the device
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_update(const OptimizerConfig& rule, const DeviceUpdate& update, cudaStream_t stream) {
  return with_rule(rule, [&]<typename Rule>(Rule) { return launch<Rule>(update, stream); });
}

cudaError_t load_update_kernels() {
  for (const auto kind : {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam, OptimizerKind::kAdagrad,
                          OptimizerKind::kFtrl}) {
    for (const bool nesterov : {false, true}) {
      const cudaError_t result = with_rule({.kind = kind, .nesterov = nesterov}, []<typename Rule>(Rule) {
        return load<Rule, float, __nv_bfloat16, __half>();
      });
      if (result != cudaSuccess) return result;
    }
  }
  return cudaSuccess;
}

}  // namespace syncopate
