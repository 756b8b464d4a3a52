// What a row of a table begins with: a function of seed, table and row, so that a row can be made where and when it is
// first wanted, and is the same in every mode.
#pragma once

#include <cstdint>
#include <span>

#include "common/param_layout.h"

namespace syncopate {

// Writes the first values of row `row` of the layout's `table`-th table: uniform in ±limit.
void initial_row(std::uint64_t seed, std::size_t table, RowKey row, float limit, std::span<float> values);

}  // namespace syncopate
