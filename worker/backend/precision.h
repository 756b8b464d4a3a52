// Precision: how a device multiplies. Weights, activations, gradients and sums are float32 in each.
#pragma once

namespace syncopate::worker {

enum class Precision {
  kFp32,
  kTf32,  // factors rounded to 10 bits of mantissa
  kBf16,  // factors rounded to 7
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
