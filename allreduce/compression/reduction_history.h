// ReductionHistory: what a compressed reduction remembers, beside a copy of what it remembered before the step under
// way, so that the step can be undone. One thread at a time.
//
// Of a step that has failed here another rank may hold the whole sum. Then this rank's gradients are in it, and what
// was kept back of them is to be remembered; if nobody holds it, they are not, and the step's memory is to be
// forgotten. Which of the two it is comes out when the members agree where they stand: both are saved.
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
  ReductionHistory() = default;  // of what remembers nothing
  // The memories outlive it. `worker` is this rank's in the job; what is its own is kept under that.
  ReductionHistory(std::vector<ReductionMemory> memories, int worker);

  bool empty() const { return memories_.empty(); }
  // At the beginning of a step, before its first reduction: what is remembered now is kept.
  void keep();

  // Adds what is remembered. Of a step that has failed: what keep() has kept, and beside it what the step has made of
  // it.
  void save(TrainingState& state, bool step_failed) const;
  // Takes what there is of it in `state`; what is not there is zero. Of a step that had failed: as it was before it.
  void restore(const TrainingState& state);
  // After restore: as it was after the step that had failed here.
  void count_failed_step();
  // What is alike on all ranks, of a rank that has it.
  Status transfer(StateTransfer& transfer);

 private:
  void make_room();
  std::string name_of(const ReductionMemory& memory, bool of_failed_step) const;

  std::vector<ReductionMemory> memories_;
  // By memory, if any: as it was before the step under way; between restore and the first step, after the failed one.
  std::vector<AlignedBuffer> kept_;
  int worker_ = 0;
};

}  // namespace syncopate::allreduce
