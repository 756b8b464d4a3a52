// RunWatcher: is shown a run while it goes on, and shows it to others: TensorBoard, Prometheus. The Recorder calls it
// on the coordinator's thread.
#pragma once

#include <cstdint>
#include <string>

#include "common/clock.h"
#include "common/status.h"
#include "common/step_record.h"
#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

class RunWatcher {
 public:
  virtual ~RunWatcher() = default;

  // Training begins. Times count from there.
  virtual void begin(TimePoint origin) = 0;
  // Steps come worker by worker: those of a moment may be known up to a second later.
  virtual void add(int worker, const StepRecord& step) = 0;
  virtual void add(const EvalRecord& eval) = 0;
  // A worker was lost, and the others go on without it; it takes part again.
  virtual void worker_lost(int rank) = 0;
  virtual void worker_joined(int rank) = 0;
  // A fault of --fault has been injected.
  virtual void fault_injected() = 0;
  // Something was the first in the run that is not a finite number.
  virtual void not_finite(std::int64_t step, const std::string& line) = 0;
  // Called about every 100 ms, with the time before which all steps have been added. A failure (the disk is full) ends
  // the run.
  virtual Status tick(TimePoint now, TimePoint all_before) = 0;
  // The run is over, and everything has been added.
  virtual Status end() = 0;
};

}  // namespace syncopate::experiments
