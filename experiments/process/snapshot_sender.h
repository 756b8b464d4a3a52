// SnapshotSender: a worker's weights on their way to the coordinator. Of row-sparse tables it sends rows (test_rows.h),
// which rank 0 alone can read from the strategy.
#pragma once

#include <span>

#include "common/sync_strategy.h"
#include "experiments/control/control_client.h"
#include "experiments/process/test_rows.h"

namespace syncopate::experiments {

class SnapshotSender {
 public:
  // All outlive the sender. Fails as test_rows does. To be made before the model trains.
  static Result<SnapshotSender> create(worker::Model& model, const worker::Dataset& test, SyncStrategy& strategy,
                                       ControlClient& control, int rank);

  // Whether this worker can: not where there are tables, and this is not rank 0.
  bool may_send() const { return rank_ == 0 || layout_.tables().empty(); }
  // `weights` is the model's arena. Between steps, and, if the stamp says final, after leave. Does nothing where it
  // cannot.
  Status send(WeightsSnapshot stamp, std::span<const float> weights);

 private:
  SnapshotSender(const ParamLayout& layout, SyncStrategy& strategy, ControlClient& control, int rank)
      : layout_(layout), strategy_(strategy), control_(control), rank_(rank) {}

  const ParamLayout& layout_;
  SyncStrategy& strategy_;
  ControlClient& control_;
  int rank_;
  TableKeys test_rows_;
};

}  // namespace syncopate::experiments
