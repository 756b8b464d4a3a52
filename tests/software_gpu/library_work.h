// What cuBLASLt and cuDNN have in common here: factors that are rounded as tensor cores round them, and products of
// matrices by oneDNN.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <initializer_list>
#include <vector>

namespace software_gpu {

// How many of a float's 23 bits of significand a factor loses.
enum class Lost { kNone = 0, kOfTf32 = 13 };

// What a number in the device's memory is.
enum class Element { kFloat, kBf16, kHalf };
std::size_t size_of(Element element);
// Those of 16 bits are rounded to nearest, ties to even.
float rounded_to(Element element, float value);
void load(const void* from, std::size_t count, Element element, float* to);
void store(const float* from, std::size_t count, Element element, void* to);

// Factors as the product takes them, as floats: where they lie, or rounded to nearest, ties to even.
class Factors {
 public:
  Factors(const void* values, std::size_t count, Element element, Lost lost);
  const float* data() const { return at_; }

 private:
  std::vector<float> rounded_;
  const float* at_;
};

// Where a product's result is made, as floats: where it shall lie, or elsewhere until it is stored.
class ResultOfProduct {
 public:
  ResultOfProduct(void* result, std::size_t count, Element element);
  float* data() { return at_; }
  void store() const;

 private:
  void* const result_;
  const std::size_t count_;
  const Element element_;
  std::vector<float> floats_;
  float* at_;
};

// C (m, n) = A (m, k) B (k, n) + beta C, all row by row; a transposed factor lies as (k, m) or (n, k).
void multiply(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k, const float* a,
              std::size_t a_row, const float* b, std::size_t b_row, float beta, float* c, std::size_t c_row);

// An operand of a call: so many numbers in device memory.
struct Operand {
  const void* memory;
  std::size_t count;
  Element element;
};
// Finds a fault unless the operands, and so many bytes of workspace, are of device memory.
bool are_on_device(const char* call, std::initializer_list<Operand> operands, const void* workspace, std::size_t bytes);

// Spoils the workspace's beginning and end, which a library may use as it likes, and the result, which it overwrites.
void spoil_before(void* workspace, std::size_t bytes, const Operand& result);

}  // namespace software_gpu
