// BatchSource: where a trainer gets its batches from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "worker/model.h"

namespace syncopate::worker {

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // The next batch, epoch after epoch without end; it may wait. Valid until the next call.
  virtual BatchView next() = 0;

  // next() goes on with the batch of step `step`, counted from 0 through all epochs: at first it is at 0.
  virtual void seek(std::int64_t step) = 0;

  // A source that goes by orders has no batches of its own: next() gives those that have been ordered, by their numbers
  // in the job (batch n is part n % W of global batch n / W), in that order. To be called before next() for each.
  virtual void order(std::int64_t /*number*/) {}
  // Nothing that has been ordered and not been given is wanted any more.
  virtual void forget_orders() {}

  // Why next() has no more batches, if so.
  virtual Status status() const { return {}; }

  // All memory that batches lie in, for whoever copies them to a device; empty where that is not known.
  virtual std::span<std::byte> memory() { return {}; }
};

}  // namespace syncopate::worker
