// What cuBLASLt and cuDNN have in common here: factors that are rounded as tensor cores round them, and products of
// matrices by oneDNN.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <initializer_list>
#include <vector>

namespace software_gpu {

// How many of a float's 23 bits of significand a factor loses: none, TF32, BF16.
enum class Lost { kNone = 0, kOfTf32 = 13, kOfBf16 = 16 };

// Factors as the product takes them: where they lie, or rounded to nearest, ties to even.
class Factors {
 public:
  Factors(const void* values, std::size_t count, Lost lost);
  const float* data() const { return at_; }

 private:
  std::vector<float> rounded_;
  const float* at_;
};

// C (m, n) = A (m, k) B (k, n) + beta C, all row by row; a transposed factor lies as (k, m) or (n, k).
void multiply(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k, const float* a,
              std::size_t a_row, const float* b, std::size_t b_row, float beta, float* c, std::size_t c_row);

// An operand of a call: so many floats of device memory.
struct Operand {
  const void* memory;
  std::size_t floats;
};
// Finds a fault unless the operands, and so many bytes of workspace, are of device memory.
bool are_on_device(const char* call, std::initializer_list<Operand> operands, const void* workspace, std::size_t bytes);

// Spoils the workspace's beginning, which a library may use as it likes, and the result, which it overwrites.
void spoil_before(void* workspace, std::size_t bytes, void* result, std::size_t floats);

}  // namespace software_gpu
