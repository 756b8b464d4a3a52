// ReductionHistory: the memories of a compressed reduction, with a copy of them from before the current step, so that
// the step can be undone. One thread at a time.
//
// When a step has failed on this rank, another rank may still hold the whole sum. Then the sum includes this rank's
// gradients, and their residual must be kept; if no rank holds it, the step's residual must be dropped. Which of the
// two holds is known when the members agree on the step they go on from, so both are saved.
#pragma once

#include <string>
#include <vector>

#include "allreduce/collective/state_transfer.h"
#include "allreduce/compression/compressed_reduction.h"
#include "common/os/aligned_buffer.h"
#include "common/training_state.h"

namespace syncopate::allreduce {

class ReductionHistory {
 public:
  ReductionHistory() = default;  // for a reduction that keeps nothing
  // The memories must outlive it. `worker` is this rank's number in the job, under which its own memories are saved.
  ReductionHistory(std::vector<ReductionMemory> memories, int worker);

  bool empty() const { return memories_.empty(); }
  // Copies the memories. Call it at the beginning of a step, before its first reduction.
  void keep();

  // Adds the memories to `state`. After a step that has failed, these are the copies of keep(), with what the step has
  // made of them beside.
  void save(TrainingState& state, bool step_failed) const;
  // Takes the memories from `state`; those that it lacks become zero. After a step that had failed, they are as before
  // it.
  void restore(const TrainingState& state);
  // Call after restore: sets the memories as they were after the step that had failed here.
  void count_failed_step();
  // Sends the memories that are alike on all ranks from a rank that has them.
  Status transfer(StateTransfer& transfer);

 private:
  void make_room();
  std::string name_of(const ReductionMemory& memory, bool of_failed_step) const;

  std::vector<ReductionMemory> memories_;
  // By memory, if any: its values before the current step; between restore and the first step, those after the failed
  // one.
  std::vector<AlignedBuffer> kept_;
  int worker_ = 0;
};

}  // namespace syncopate::allreduce
