// SnapshotSender: a worker's weights on their way to the coordinator; of row-sparse tables some rows (test_rows.h).
#pragma once

#include <optional>
#include <span>

#include "common/sync_strategy.h"
#include "experiments/cluster/control/control_client.h"
#include "experiments/cluster/process/test_rows.h"

namespace syncopate::experiments {

class SnapshotSender {
 public:
  // All outlive the sender.
  SnapshotSender(worker::Model& model, const worker::Dataset& test, ControlClient& control)
      : model_(model), test_(test), control_(control) {}

  // Finds out which rows the test set touches, which the first send would do otherwise. Fails as test_rows does.
  Status prepare();
  // `weights` is the model's arena, `strategy` has its rows. Between steps, and, if the stamp says final, after leave.
  Status send(WeightsSnapshot stamp, std::span<const float> weights, SyncStrategy& strategy);

 private:
  worker::Model& model_;
  const worker::Dataset& test_;
  ControlClient& control_;
  std::optional<TableKeys> test_rows_;
};

}  // namespace syncopate::experiments
