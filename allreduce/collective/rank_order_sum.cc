#include "allreduce/collective/rank_order_sum.h"

#include <algorithm>
#include <array>

#include "common/float_loops.h"
#include "common/os/target_clones.h"

namespace syncopate::allreduce {
namespace {

// A number of buffers that is known when this is compiled leaves one pass, all in registers: 1 MB in two buffers takes
// half of the time that it takes by blocks. Elements of one index alone depend on each other.
template <std::size_t kBuffers>
SYNCOPATE_CLONES void sum_few(std::span<float* const> buffers, std::size_t count) {
  std::array<float*, kBuffers> at;
  std::copy_n(buffers.begin(), kBuffers, at.begin());
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    float sum = at[0][i];
    for (std::size_t b = 1; b < kBuffers; ++b) sum += at[b][i];
    for (std::size_t b = 0; b < kBuffers; ++b) at[b][i] = sum;
  }
}

template <std::size_t kParts>
SYNCOPATE_CLONES void add_few(float* sum, std::span<const float* const> parts, std::size_t count) {
  std::array<const float*, kParts> at;
  std::copy_n(parts.begin(), kParts, at.begin());
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    float total = at[0][i];
    for (std::size_t p = 1; p < kParts; ++p) total += at[p][i];
    sum[i] = total;
  }
}

// Any number: a block at a time, whose sum stays in the nearest cache. Calls take(sum, begin, size) for each.
template <typename Take>
SYNCOPATE_CLONES void sum_by_blocks(std::span<float* const> buffers, std::size_t count, const Take& take) {
  constexpr std::size_t kBlock = 1024;
  std::array<float, kBlock> sum;
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t size = std::min(kBlock, count - begin);
    std::copy_n(buffers[0] + begin, size, sum.begin());
    for (const float* buffer : buffers.subspan(1)) {
      for (std::size_t i = 0; i < size; ++i) sum[i] += buffer[begin + i];
    }
    take(sum.begin(), begin, size);
  }
}

void sum_many(std::span<float* const> buffers, std::size_t count) {
  sum_by_blocks(buffers, count, [&](const float* sum, std::size_t begin, std::size_t size) {
    for (float* buffer : buffers) std::copy_n(sum, size, buffer + begin);
  });
}

}  // namespace

void sum_everywhere(std::span<float* const> buffers, std::size_t count) {
  switch (buffers.size()) {
    case 1:
      return;
    case 2:
      return sum_few<2>(buffers, count);
    case 3:
      return sum_few<3>(buffers, count);
    case 4:
      return sum_few<4>(buffers, count);
    case 8:
      return sum_few<8>(buffers, count);
    default:
      return sum_many(buffers, count);
  }
}

void sum_in_one(std::span<float* const> buffers, std::size_t to, std::size_t count) {
  sum_by_blocks(buffers, count, [&](const float* sum, std::size_t begin, std::size_t size) {
    std::copy_n(sum, size, buffers[to] + begin);
  });
}

void sum_into(float* sum, std::span<const float* const> parts, std::size_t count) {
  switch (parts.size()) {
    case 2:
      return add_few<2>(sum, parts, count);
    case 3:
      return add_few<3>(sum, parts, count);
    case 4:
      return add_few<4>(sum, parts, count);
    default:
      if (sum != parts[0]) std::copy_n(parts[0], count, sum);
      for (const float* part : parts.subspan(1)) add(part, sum, count);
  }
}

}  // namespace syncopate::allreduce
