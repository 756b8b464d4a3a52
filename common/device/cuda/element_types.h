// The types of a tensor's elements in kernels, which compute in float32 and round what they store. For .cu files only.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "common/tensor_span.h"

namespace syncopate {

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float to_float(__half value) { return __half2float(value); }

// Rounds to the nearest, ties to even; what is beyond a float16's range becomes infinite.
template <typename Element>
__device__ Element from_float(float value);
template <>
__device__ inline float from_float<float>(float value) {
  return value;
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ inline __half from_float<__half>(float value) {
  return __float2half_rn(value);
}

// Returns call(Element()), with the C++ type of such elements.
template <typename Call>
auto with_element(ElementType type, Call call) {
  switch (type) {
    case ElementType::kBfloat16:
      return call(__nv_bfloat16());
    case ElementType::kFloat16:
      return call(__half());
    case ElementType::kFloat32:
      break;
  }
  return call(float());
}

// The elements of a tensor, whose type must be theirs.
template <typename Element>
Element* elements(TensorSpan tensor) {
  return static_cast<Element*>(tensor.address());
}
template <typename Element>
const Element* elements(ConstTensorSpan tensor) {
  return static_cast<const Element*>(tensor.address());
}

}  // namespace syncopate
