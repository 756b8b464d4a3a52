#include "experiments/cluster/control/weights_snapshot.h"

#include <cassert>

namespace syncopate::experiments {

ParamLayout snapshot_layout(const ParamLayout& layout, const TableKeys& rows) {
  assert(rows.size() == layout.tables().size());
  ParamLayout snapshot;
  for (const TensorSpec& tensor : layout.tensors()) {
    if (!tensor.table) snapshot.add(tensor.name, tensor.shape);
  }
  for (std::size_t table = 0; table < rows.size(); ++table) {
    const TensorSpec& tensor = layout.tensors()[table];
    snapshot.add(tensor.name, {static_cast<std::int64_t>(rows[table].size()), tensor.shape.back()});
  }
  return snapshot;
}

}  // namespace syncopate::experiments
