// BatchQueue: which worker trains which batches of a job whose workers share them. Pure.
//
// Batches are given out in order, a range at a time. The size of a range follows guided self-scheduling
// (Polychronopoulos and Kuck 1987, "Guided self-scheduling: a practical scheduling scheme for parallel
// supercomputers"). It is at most what is left divided by twice the number of workers, so that ranges become short
// towards the end and all workers end together. It is also at most what the worker asks for, since the worker knows how
// long batches take there. Batches that a lost worker had drawn and not trained are given out again before all others.
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
  // Makes the queue of a job of this many batches, of which the first `done` have been trained before.
  BatchQueue(std::int64_t batches, int workers, std::int64_t done = 0);

  // Returns the next batches for `worker`; none if all have been given out. A worker that wants many gets at least an
  // eighth of them, if there are that many: shorter ranges would cost more than they balance.
  std::optional<BatchRange> draw(int worker, std::int64_t wanted);
  // The worker has trained this batch. It counts once, however often it is reported.
  void finish(int worker, std::int64_t batch);
  // The worker still has only these of the batches that it has drawn and not trained: the others are given out again.
  void hold_only(int worker, std::span<const std::int64_t> held);
  // Training goes back to where the first `done` batches had been trained.
  void go_back(std::int64_t done);

  std::int64_t batches() const { return batches_; }
  // Returns the number of batches trained so far.
  std::int64_t done() const { return done_; }

 private:
  // Returns the number of batches that are not given out.
  std::int64_t left() const { return batches_ - next_ + static_cast<std::int64_t>(returned_.size()); }

  const std::int64_t batches_;
  const std::int64_t workers_;
  std::int64_t next_ = 0;  // the first batch that was never drawn
  std::int64_t done_ = 0;
  std::set<std::int64_t> returned_;             // drawn by workers that do not have them any more
  std::map<int, std::set<std::int64_t>> held_;  // by worker: drawn, and not known to be trained
};

}  // namespace syncopate::experiments
