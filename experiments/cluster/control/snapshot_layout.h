// What a snapshot of weights contains: the dense ones, as they lie in the model's arena, followed by some rows of each
// row-sparse table.
#pragma once

#include <vector>

#include "common/param_layout.h"

namespace syncopate::experiments {

// Ascending row numbers, for each table of a layout; empty for a layout without tables.
using TableKeys = std::vector<std::vector<RowKey>>;

// Returns the layout of the snapshot, in which all tensors are dense: first that of the model without tables, then each
// table as a tensor with as many rows as `rows` names of it, but at least one.
ParamLayout snapshot_layout(const ParamLayout& layout, const TableKeys& rows);

}  // namespace syncopate::experiments
