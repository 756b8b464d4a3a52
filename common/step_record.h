// What is kept of every step of every worker, and who takes it.
#pragma once

#include <cstdint>

#include "common/clock.h"
#include "common/sync_strategy.h"

namespace syncopate {

struct StepRecord {
  std::int64_t step = 0;   // of this worker, from 0
  std::int64_t epoch = 0;  // from 0
  // In the job: batches that had been given out before it, to all workers. Where workers share the job's batches it is
  // the number of the batch.
  std::int64_t position = 0;
  TimePoint end{};      // when the weights of the next step were there
  Duration total{};     // whole step, from the end of the last one
  Duration data{};      // waiting for the batch
  Duration forward{};   // includes the loss
  Duration backward{};  // includes handing over buckets
  Duration straggle{};  // waits that make this worker slow, as --straggler asks for; in no other part
  Duration launch{};    // on a device, by whose clock forward and backward are: the host's time to give it their work
  SyncStats sync;
  std::int64_t samples = 0;
  double loss = 0;  // mean over this worker's batch
};

class RecordSink {
 public:
  virtual ~RecordSink() = default;
  // Cheap, and never blocks on a disk or a peer.
  virtual void add(const StepRecord& record) = 0;
};

}  // namespace syncopate
