// StepBatch: collects records of steps until the next message to the coordinator takes them.
//
// Any thread may call any method. Its mutex is held while one record is copied, or all are taken at once: the thread
// that trains never waits for a message to be made or sent.
#pragma once

#include <mutex>
#include <optional>

#include "common/step_record.h"
#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/wire_records.h"

namespace syncopate::experiments {

class StepBatch {
 public:
  // Adds a step that was finished in this membership epoch.
  void add(const StepRecord& record, std::int64_t membership_epoch) {
    const std::lock_guard lock(mutex_);
    control::Step& step = *message_.mutable_steps()->add_steps();
    step = to_wire(record);
    step.set_membership_epoch(membership_epoch);
  }

  // Returns all records that were added since the last call, in order; none if there are none.
  std::optional<control::ToCoordinator> take() {
    control::ToCoordinator taken;
    {
      const std::lock_guard lock(mutex_);
      taken.Swap(&message_);
    }
    return taken.steps().steps_size() > 0 ? std::optional(std::move(taken)) : std::nullopt;
  }

 private:
  std::mutex mutex_;  // guards what follows
  control::ToCoordinator message_;
};

}  // namespace syncopate::experiments
