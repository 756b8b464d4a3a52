#include "experiments/process/snapshot_sender.h"

#include <utility>

#include "experiments/report/format.h"

namespace syncopate::experiments {

Result<SnapshotSender> SnapshotSender::create(worker::Model& model, const worker::Dataset& test, SyncStrategy& strategy,
                                              ControlClient& control, int rank) {
  SnapshotSender sender(model.layout(), strategy, control, rank);
  if (!sender.may_send()) return sender;
  Result<TableKeys> rows = test_rows(model, test);
  if (!rows.ok()) return rows.status();
  sender.test_rows_ = std::move(*rows);
  return sender;
}

Status SnapshotSender::send(WeightsSnapshot stamp, std::span<const float> weights) {
  if (!may_send()) return {};
  if (layout_.tables().empty()) {
    control_.send_snapshot(stamp, weights);
    return {};
  }
  stamp.rows = test_rows_;
  if (stamp.final) {
    Result<RowsToKeep> kept = rows_to_keep(layout_, test_rows_, strategy_);
    if (!kept.ok()) return kept.status();
    if (!kept->note.empty()) control_.tell("rows kept", kept->note);
    stamp.rows = std::move(kept->rows);
  }
  const Result<std::vector<float>> values = snapshot_values(layout_, stamp.rows, weights, strategy_);
  if (!values.ok()) return values.status();
  control_.send_snapshot(stamp, *values);
  return {};
}

}  // namespace syncopate::experiments
