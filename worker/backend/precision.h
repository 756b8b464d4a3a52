// Precision: what a device multiplies in. Weights, activations and gradients lie in memory as float32 in each, sums are
// made in float32, and all but dense layers and convolutions is float32: a lesser precision is that of factors alone.
#pragma once

namespace syncopate::worker {

enum class Precision {
  kFp32,  // no factor is rounded
  kTf32,  // factors rounded to 10 bits of mantissa, with float32's range
  // Factors of dense layers rounded to 7 bits of mantissa, with float32's range. Convolutions are those of kTf32: the
  // only lesser type that cuDNN's convolutions of float32 tensors round to is float16, in whose range small gradients
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
