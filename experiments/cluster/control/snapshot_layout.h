// What a snapshot of weights holds: the dense ones, as they lie in the model's arena, and of each row-sparse table some
// rows, behind one another.
#pragma once

#include <vector>

#include "common/param_layout.h"

namespace syncopate::experiments {

// By table of a layout, ascending row numbers; empty for a layout without tables.
using TableKeys = std::vector<std::vector<RowKey>>;

// The snapshot's own layout, in which all tensors are dense: that of the model without tables; then each table as a
// tensor of as many rows as `rows` names of it, at least one.
ParamLayout snapshot_layout(const ParamLayout& layout, const TableKeys& rows);

}  // namespace syncopate::experiments
