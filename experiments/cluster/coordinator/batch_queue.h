// BatchQueue: which worker trains which batches of the job, where workers share them. Pure.
//
// Batches are given out in their order, a range at a time. How many at once is guided self-scheduling (Polychronopoulos
// and Kuck 1987, "Guided self-scheduling: a practical scheduling scheme for parallel supercomputers"): no more than
// what is left over twice the number of workers, so that towards the end ranges become so short that all workers end
// together; and no more than the worker wants, which knows how long they last there. What a worker that is lost had
// drawn and not trained is given out again, before all else.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "experiments/cluster/control/batch_range.h"

namespace syncopate::experiments {

class BatchQueue {
 public:
  // A job of so many batches, of which the first `done` have been trained before.
  BatchQueue(std::int64_t batches, int workers, std::int64_t done = 0);

  // The next batches for `worker`; none where all have been given out. Of one that wants many it is an eighth of them
  // at least, if there are so many: shorter ranges would cost more than they even out.
  std::optional<BatchRange> draw(int worker, std::int64_t wanted);
  // It has trained this one. Counted once, whoever says it how often.
  void finish(int worker, std::int64_t batch);
  // Of what it has drawn and not trained it has these alone: the others are given out again.
  void hold_only(int worker, std::span<const std::int64_t> held);
  // Training goes back to where the first `done` batches had been trained.
  void go_back(std::int64_t done);

  std::int64_t batches() const { return batches_; }
  // Trained so far.
  std::int64_t done() const { return done_; }

 private:
  // Not given out.
  std::int64_t left() const { return batches_ - next_ + static_cast<std::int64_t>(returned_.size()); }

  const std::int64_t batches_;
  const std::int64_t workers_;
  std::int64_t next_ = 0;  // that nobody has ever drawn
  std::int64_t done_ = 0;
  std::set<std::int64_t> returned_;             // drawn by workers that do not have them any more
  std::map<int, std::set<std::int64_t>> held_;  // by worker: drawn, and not known to be trained
};

}  // namespace syncopate::experiments
