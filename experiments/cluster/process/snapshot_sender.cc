#include "experiments/cluster/process/snapshot_sender.h"

#include <utility>

namespace syncopate::experiments {

Status SnapshotSender::prepare() {
  if (test_rows_) return {};
  SYNCOPATE_ASSIGN_OR_RETURN(test_rows_, test_rows(model_, test_));
  return {};
}

Status SnapshotSender::send(WeightsSnapshot stamp, std::span<const float> weights, SyncStrategy& strategy) {
  const ParamLayout& layout = model_.layout();
  if (layout.tables().empty()) {
    control_.send_snapshot(stamp, weights);
    return {};
  }
  SYNCOPATE_RETURN_IF_ERROR(prepare());
  stamp.rows = *test_rows_;
  if (stamp.final) {
    SYNCOPATE_ASSIGN_OR_RETURN(RowsToKeep kept, rows_to_keep(layout, *test_rows_, strategy));
    if (!kept.note.empty()) control_.tell("rows kept", kept.note);
    stamp.rows = std::move(kept.rows);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<float> values, snapshot_values(layout, stamp.rows, weights, strategy));
  control_.send_snapshot(stamp, values);
  return {};
}

}  // namespace syncopate::experiments
