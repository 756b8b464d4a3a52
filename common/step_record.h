// The record of every step of every worker, and its receiver.
#pragma once

#include <cstdint>
#include <optional>

#include "common/clock.h"
#include "common/sync_strategy.h"

namespace syncopate {

struct StepRecord {
  std::int64_t step = 0;   // of this worker, from 0
  std::int64_t epoch = 0;  // from 0
  // In the job: the number of batches that were assigned before this one, over all workers. If workers share the job's
  // batches, it is the number of the batch.
  std::int64_t position = 0;
  TimePoint end{};      // when the weights of the next step were available
  Duration total{};     // the whole step, from the end of the previous one
  Duration data{};      // waiting for the batch
  Duration forward{};   // includes the loss
  Duration backward{};  // includes passing on buckets
  Duration straggle{};  // waits that slow this worker on purpose (--straggler); in no other part
  // Time in which the compute thread was ready and had no core to run on; none where that is not known, and in virtual
  // time.
  std::optional<Duration> core_wait = {};
  Duration compute_core_wait{};  // the part of it up to the end of backward
  Duration launch{};  // on a device, whose clock measures forward and backward: the host's time to enqueue them
  SyncStats sync;
  std::int64_t samples = 0;  // of this worker's batch; the next two are means over them, and 0 where there are none
  double loss = 0;
  double accuracy = 0;  // share of the labels that were predicted, 0 to 1, before the update
};

// Returns the time of the parts that do not overlap. What the whole step has beyond them is reported as other.
inline Duration parts_of(const StepRecord& step) {
  return step.data + step.forward + step.backward + step.straggle + step.sync.exposed_wait + step.sync.optimizer;
}

class RecordSink {
 public:
  virtual ~RecordSink() = default;
  // Cheap, and never blocks on a disk or a peer.
  virtual void add(const StepRecord& record) = 0;
};

}  // namespace syncopate
