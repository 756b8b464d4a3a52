// The limits of the files of a checkpoint of this model. A reader checks them before it allocates memory or uses a
// number, since a checkpoint is not trusted. Pure.
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

// The largest header of a file that a process has for itself: some thousand tensors.
inline constexpr std::uint64_t kMostStoredHeader = std::uint64_t{16} << 20;

// Fails with data loss unless a file's entry in the manifest fits the model: values with a layout lie in the file and
// at the offsets that the layout gives them, and no file is larger than its part of the model's state.
Status check_stored(const StoredFile& file, const StateForms& forms);

// Returns the elements that a tensor of values without a layout, or of padding, holds. The tensor is named after the
// first of them and has no whole numbers. Fails with data loss unless the elements can be part of this model.
Result<Range> piece_of(const PlacedTensor& tensor, const StateForms& forms);

// The contents of a file of rows.
struct StoredRows {
  std::size_t table = 0;  // its index in the layout
  std::uint64_t count = 0;
  std::size_t row_floats = 0;
};
// Fails with data loss unless the file has the keys, followed by the rows, of the table that `stored` names.
Result<StoredRows> rows_of(const StoredFile& stored, const std::vector<PlacedTensor>& tensors, const StateForms& forms);
// Returns the table's index; none if the layout has no such table.
std::optional<std::size_t> table_of(const StoredFile& stored, const StateForms& forms);

}  // namespace syncopate::experiments
