#include "tests/software_gpu/library_work.h"

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

}  // namespace

Factors::Factors(const void* values, std::size_t count, Lost lost) : at_(static_cast<const float*>(values)) {
  reads(values, count * sizeof(float));
  if (lost == Lost::kNone) return;
  rounded_.assign(at_, at_ + count);
  for (float& value : rounded_) value = rounded(value, static_cast<int>(lost));
  at_ = rounded_.data();
}

void multiply(bool transpose_a, bool transpose_b, std::size_t m, std::size_t n, std::size_t k, const float* a,
              std::size_t a_row, const float* b, std::size_t b_row, float beta, float* c, std::size_t c_row) {
  const auto of = [](std::size_t size) { return static_cast<dnnl_dim_t>(size); };
  dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', of(m), of(n), of(k), 1.0f, a, of(a_row), b, of(b_row),
             beta, c, of(c_row));
}

bool are_on_device(const char* call, std::initializer_list<Operand> operands, const void* workspace,
                   std::size_t bytes) {
  const auto is_on_device = [](const Operand& operand) {
    return device_bytes_from(operand.memory) >= operand.floats * sizeof(float);
  };
  if (std::ranges::all_of(operands, is_on_device) && (bytes == 0 || device_bytes_from(workspace) >= bytes)) return true;
  find_fault(std::string(call) + ": an operand is not of device memory, or ends too early");
  return false;
}

void spoil_before(void* workspace, std::size_t bytes, void* result, std::size_t floats) {
  const auto overwrite = [](void* memory, std::size_t size) {
    writes(memory, size);
    spoil(memory, size);
  };
  // Its beginning and its end are enough to find whoever shares it.
  const std::size_t part = std::min(bytes, std::size_t{4096});
  if (part > 0) overwrite(workspace, part);
  if (part > 0) overwrite(static_cast<char*>(workspace) + (bytes - part), part);
  overwrite(result, floats * sizeof(float));
}

}  // namespace software_gpu
