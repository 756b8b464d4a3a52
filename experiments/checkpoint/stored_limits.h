// What a file of a checkpoint of this model can be at most. Whoever reads one asks here before it takes memory, or
// believes a number: a checkpoint may be anybody's. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/param_layout.h"
#include "common/status.h"
#include "experiments/checkpoint/arena_form.h"
#include "experiments/checkpoint/manifest.h"
#include "experiments/checkpoint/safetensors.h"

namespace syncopate::experiments {

// Of a file that a process has for itself: some thousand tensors.
inline constexpr std::uint64_t kMostStoredHeader = std::uint64_t{16} << 20;

// Data loss unless what a manifest says of this file fits the model: values with a layout lie in the file and at the
// places that the layout has for them, and no file is larger than its part of the model's state.
Status check_stored(const StoredFile& file, const StateForms& forms);

// The elements that a tensor of values without a layout holds, or of padding: named for the first, whole numbers
// nowhere. Data loss unless they can be of this model.
Result<Range> piece_of(const PlacedTensor& tensor, const StateForms& forms);

// What a file of rows holds.
struct StoredRows {
  std::size_t table = 0;  // its index in the layout
  std::uint64_t count = 0;
  std::size_t row_floats = 0;
};
// Data loss unless the file has the keys, and behind them the rows, of the table that `stored` is of.
Result<StoredRows> rows_of(const StoredFile& stored, const std::vector<PlacedTensor>& tensors, const StateForms& forms);
// The table's index; none where there is no such table in the layout.
std::optional<std::size_t> table_of(const StoredFile& stored, const StateForms& forms);

}  // namespace syncopate::experiments
