#include "common/tables/initial_row.h"

#include "common/random.h"

namespace syncopate {

void initial_row(std::uint64_t seed, std::size_t table, RowKey row, float limit, std::span<float> values) {
  constexpr std::uint64_t kStreamOfRows = std::uint64_t{1} << 62;  // apart from the streams of tensors and batches
  Random random(seed, kStreamOfRows + (static_cast<std::uint64_t>(table) << 32) + row);
  const double bound = static_cast<double>(limit);
  for (float& value : values) value = static_cast<float>(random.uniform(-bound, bound));
}

}  // namespace syncopate
