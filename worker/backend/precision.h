// Precision: the precision in which a device multiplies. Weights, activations and gradients are always stored as
// float32, sums are computed in float32, and so is everything but dense layers and convolutions. A lower precision
// affects only factors.
#pragma once

namespace syncopate::worker {

enum class Precision {
  kFp32,  // factors are not rounded
  kTf32,  // factors rounded to 10 bits of mantissa, with float32's range
  // Factors of dense layers rounded to 7 bits of mantissa, with float32's range. Convolutions are those of kTf32: the
  // only lower type to which cuDNN's convolutions of float32 tensors round is float16, in whose range small gradients
  // vanish.
  kBf16,
};

// "fp32", "tf32", "bf16"
inline const char* name_of(Precision value) {
  switch (value) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kTf32:
      return "tf32";
    case Precision::kBf16:
      return "bf16";
  }
  return "";
}

}  // namespace syncopate::worker
