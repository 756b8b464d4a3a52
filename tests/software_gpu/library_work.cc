#include "tests/software_gpu/library_work.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include "tests/software_gpu/accesses.h"
#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/memory.h"

namespace software_gpu {
namespace {

float rounded(float value, int bits) {
  const auto pattern = std::bit_cast<std::uint32_t>(value);
  constexpr std::uint32_t kExponent = 0x7f800000u;
  if ((pattern & kExponent) == kExponent) return value;
  const std::uint32_t half = (std::uint32_t{1} << (bits - 1)) - 1 + ((pattern >> bits) & 1);
  return std::bit_cast<float>((pattern + half) >> bits << bits);
}

const __nv_bfloat16* bf16(const void* values) { return static_cast<const __nv_bfloat16*>(values); }
__nv_bfloat16* bf16(void* values) { return static_cast<__nv_bfloat16*>(values); }
const __half* half(const void* values) { return static_cast<const __half*>(values); }
__half* half(void* values) { return static_cast<__half*>(values); }

}  // namespace

std::size_t size_of(Element element) { return element == Element::kFloat ? 4 : 2; }

float rounded_to(Element element, float value) {
  if (element == Element::kBf16) return __bfloat162float(__float2bfloat16_rn(value));
  return element == Element::kHalf ? __half2float(__float2half_rn(value)) : value;
}

void load(const void* from, std::size_t count, Element element, float* to) {
  if (element == Element::kFloat) std::copy_n(static_cast<const float*>(from), count, to);
  if (element == Element::kBf16) std::transform(bf16(from), bf16(from) + count, to, __bfloat162float);
  if (element == Element::kHalf) std::transform(half(from), half(from) + count, to, __half2float);
}

void store(const float* from, std::size_t count, Element element, void* to) {
  if (element == Element::kFloat) std::copy_n(from, count, static_cast<float*>(to));
  if (element == Element::kBf16) std::transform(from, from + count, bf16(to), __float2bfloat16_rn);
  if (element == Element::kHalf) std::transform(from, from + count, half(to), __float2half_rn);
}

Factors::Factors(const void* values, std::size_t count, Element element, Lost lost)
    : at_(static_cast<const float*>(values)) {
  reads(values, count * size_of(element));
  if (element == Element::kFloat && lost == Lost::kNone) return;
  rounded_.resize(count);
  load(values, count, element, rounded_.data());
  if (element == Element::kFloat) {
    for (float& value : rounded_) value = rounded(value, static_cast<int>(lost));
  }
  at_ = rounded_.data();
}

ResultOfProduct::ResultOfProduct(void* result, std::size_t count, Element element)
    : result_(result), count_(count), element_(element), at_(static_cast<float*>(result)) {
  if (element == Element::kFloat) return;
  floats_.resize(count);
  at_ = floats_.data();
}

void ResultOfProduct::store() const {
  if (element_ != Element::kFloat) software_gpu::store(at_, count_, element_, result_);
}

void multiply(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k, const float* a,
              std::size_t a_row, const float* b, std::size_t b_row, float beta, float* c, std::size_t c_row) {
  // Memory opens here: code that oneDNN makes at run time stands no handler of a signal.
  for (const volatile float* operand : {a, b, static_cast<const float*>(c)}) static_cast<void>(*operand);
  const auto of = [](std::size_t size) { return static_cast<dnnl_dim_t>(size); };
  dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', of(m), of(n), of(k), 1.0f, a, of(a_row), b, of(b_row),
             beta, c, of(c_row));
}

bool are_on_device(const char* call, std::initializer_list<Operand> operands, const void* workspace,
                   std::size_t bytes) {
  const auto is_on_device = [](const Operand& operand) {
    return device_bytes_from(operand.memory) >= operand.count * size_of(operand.element);
  };
  if (std::ranges::all_of(operands, is_on_device) && (bytes == 0 || device_bytes_from(workspace) >= bytes)) return true;
  find_fault(std::string(call) + ": an operand is not of device memory, or ends too early");
  return false;
}

void spoil_before(void* workspace, std::size_t bytes, const Operand& result) {
  const auto overwrite = [](void* memory, std::size_t size) {
    writes(memory, size);
    spoil(memory, size);
  };
  // Its beginning and its end are enough to find whoever shares it.
  const std::size_t part = std::min(bytes, std::size_t{4096});
  if (part > 0) overwrite(workspace, part);
  if (part > 0) overwrite(static_cast<char*>(workspace) + (bytes - part), part);
  overwrite(const_cast<void*>(result.memory), result.count * size_of(result.element));
}

}  // namespace software_gpu
