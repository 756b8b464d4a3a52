#include "common/float_loops.h"

#include "common/os/target_clones.h"

namespace syncopate {

SYNCOPATE_CLONES void add(const float* __restrict values, float* __restrict sum, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] += values[i];
}

SYNCOPATE_CLONES void subtract(const float* __restrict from, const float* __restrict what, float* __restrict difference,
                               std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) difference[i] = from[i] - what[i];
}

SYNCOPATE_CLONES void scale(float factor, const float* __restrict values, float* __restrict scaled, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) scaled[i] = factor * values[i];
}

}  // namespace syncopate
