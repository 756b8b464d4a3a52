// TensorGroup: the workers that have the parts of the same layers, as these see them.
#pragma once

#include <span>

#include "common/status.h"
#include "common/transport/transport.h"

namespace syncopate::worker {

// All workers of a group make the same calls in the same order, with as many values, at most TensorLinks::kPiece of
// them or as many as the largest sum of the model has. One thread; it is the trainer's. A call waits for the others,
// with a deadline; its failure says for which worker.
class TensorGroup {
 public:
  virtual ~TensorGroup() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Leaves the sum over all workers in each one's values, with the same bits.
  virtual Status sum(std::span<float> values) = 0;
  // Copies the values of worker `root` of the group to all others.
  virtual Status broadcast(std::span<float> values, int root) = 0;

  // What this worker has sent and received so far.
  virtual TransportCounters counters() const = 0;
};

}  // namespace syncopate::worker
