// Precision: the precision in which a device trains. Sums are computed in float32 whatever it is, and the weights that
// updates are added to are float32 (see ParamArenas).
#pragma once

#include "common/tensor_span.h"

namespace syncopate::worker {

enum class Precision {
  kFp32,  // factors are not rounded
  kTf32,  // factors of dense layers and convolutions rounded to 10 bits of mantissa, with float32's range
  // Activations, their gradients, and the weights and gradients of the model are 16-bit numbers.
  kBf16,
  kFp16,  // whose range is small: the loss is scaled, so that small gradients do not vanish
};

// "fp32", "tf32", "bf16", "fp16"
inline const char* name_of(Precision value) {
  switch (value) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kTf32:
      return "tf32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      return "fp16";
  }
  return "";
}

// The type of the tensors that the model computes with.
inline ElementType element_type_of(Precision value) {
  if (value == Precision::kBf16) return ElementType::kBfloat16;
  return value == Precision::kFp16 ? ElementType::kFloat16 : ElementType::kFloat32;
}

}  // namespace syncopate::worker
