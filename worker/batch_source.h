// BatchSource: provides a trainer with batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "worker/model.h"

namespace syncopate::worker {

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Returns the next batch, epoch after epoch without end. It may wait. Valid until the next call.
  virtual BatchView next() = 0;

  // Makes next() go on with the batch of step `step`, counted from 0 through all epochs. A new source is at step 0.
  virtual void seek(std::int64_t step) = 0;

  // For a source that works by orders, which has no batches of its own: next() returns the ordered batches, by their
  // numbers in the job (batch n is part n % W of global batch n / W), in the order of the calls. Call it before next()
  // for each.
  virtual void order(std::int64_t /*number*/) {}
  // Drops all orders that next() has not returned yet.
  virtual void forget_orders() {}

  // Why next() has no more batches, if so.
  virtual Status status() const { return {}; }

  // All memory that batches lie in, for code that copies them to a device. Empty if it is not known.
  virtual std::span<std::byte> memory() { return {}; }
};

}  // namespace syncopate::worker
