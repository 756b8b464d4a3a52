// The initial values of a table's row: a function of seed, table and row, so that a row can be created wherever and
// whenever it is first used, and is the same in every mode.
#pragma once

#include <cstdint>
#include <span>

#include "common/param_layout.h"

namespace syncopate {

// Writes the initial values of row `row` of the layout's `table`-th table: uniform in ±limit.
void initial_row(std::uint64_t seed, std::size_t table, RowKey row, float limit, std::span<float> values);

}  // namespace syncopate
