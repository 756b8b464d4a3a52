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
  float* __restrict__ third;
  std::size_t count;
  const UpdateConstants* __restrict__ constants;
  const LossScale* __restrict__ scale;
};

// Neighbouring threads take neighbouring elements, so that each access of a warp is one piece of memory.
template <typename Rule, typename Element>
__global__ void __launch_bounds__(kThreads) update(Operands<Element> o) {
  if (o.scale != nullptr && o.scale->overflowed != 0) return;
  const float share = o.scale != nullptr ? 1 / o.scale->factor : 1;  // a power of two
  const auto constants = o.constants[o.scale != nullptr ? o.scale->choice() : 0].*(Rule::kConstants);
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < o.count; i += stride) {
    update_rule::apply_at<Rule>(o.weights[i], to_float(o.gradient[i]) * share, o.first, o.second, o.third, i,
                                constants);
    if (o.rounded != nullptr) o.rounded[i] = from_float<Element>(o.weights[i]);
  }
}

template <typename Rule>
cudaError_t launch(const DeviceUpdate& u, cudaStream_t stream) {
  const std::size_t blocks = std::min((u.weights.size() + kThreads - 1) / kThreads, kMostBlocks);
  return with_element(u.gradient.type(), [&]<typename Element>(Element) {
    update<Rule, Element><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
        Operands<Element>{u.weights.data(), elements<Element>(u.gradient), elements<Element>(u.rounded_weights),
                          u.state.memories[0].data(), u.state.memories[1].data(), u.state.memories[2].data(),
                          u.weights.size(), u.constants, u.loss_scale});
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

}  // namespace

cudaError_t launch_update(const OptimizerConfig& rule, const DeviceUpdate& update, cudaStream_t stream) {
  return update_rule::with_rule(rule, [&]<typename Rule>(Rule) {
    if constexpr (update_rule::Layerwise<Rule>) {
      return cudaErrorNotSupported;  // needs norms of whole tensors; a run on GPUs is refused such a rule
    } else {
      return launch<Rule>(update, stream);
    }
  });
}

cudaError_t load_update_kernels() {
  cudaError_t result = cudaSuccess;
  update_rule::for_each_rule([&]<typename Rule>(Rule) {
    if (result == cudaSuccess) result = load<Rule, float, __nv_bfloat16, __half>();
  });
  return result;
}

}  // namespace syncopate
