// SnapshotSender: sends a worker's weights to the coordinator, and some rows of row-sparse tables (test_rows.h).
#pragma once

#include <optional>
#include <span>

#include "common/sync_strategy.h"
#include "experiments/cluster/control/control_client.h"
#include "experiments/cluster/process/test_rows.h"

namespace syncopate::experiments {

class SnapshotSender {
 public:
  // All arguments outlive the sender.
  SnapshotSender(worker::Model& model, const worker::Dataset& test, ControlClient& control)
      : model_(model), test_(test), control_(control) {}

  // Finds the rows that the test set uses, which the first send would do otherwise. Fails as test_rows does.
  Status prepare();
  // `weights` is the model's arena; `strategy` has its rows. Call it between steps, and, if the stamp says final, after
  // leave.
  Status send(WeightsSnapshot stamp, std::span<const float> weights, SyncStrategy& strategy);

 private:
  worker::Model& model_;
  const worker::Dataset& test_;
  ControlClient& control_;
  std::optional<TableKeys> test_rows_;
};

}  // namespace syncopate::experiments
