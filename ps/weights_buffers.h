// WeightsBuffers: a shard's weights, kept so that answers can be sent from them in place while updates go on.
//
// A buffer that a transport still reads must not change. An update is made in place when nobody reads the current
// buffer, and otherwise out of place, into one that is free: copy on write. A worker has at most one answer at a time,
// so workers + 1 buffers are the most there can be. With one worker, and whenever all workers have pushed since they
// were last answered (sync), an update is always in place.
//
// One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "common/status.h"
#include "common/transport/transport.h"

namespace syncopate::ps {

class WeightsBuffers {
 public:
  // Zeroed memory of so many floats that outlives this object.
  using Allocate = std::function<Result<std::span<float>>(std::size_t elements)>;
  // Brings a counter to zero that is about to be there: the reader is known to be done, the report is under way.
  using Settle = std::function<Status(const PendingSends& pending)>;

  WeightsBuffers(int workers, Allocate allocate, Settle settle);

  // Makes the first buffer: `elements` zeros. Once, before all else. Fails as `allocate` does.
  Status create(std::size_t elements);

  // After create().
  std::span<const float> current() const { return buffers_[current_].weights; }

  // The current weights, to be sent to `worker` and counted in `pending`. It reads them until returned(worker).
  struct Loan {
    std::span<const float> weights;
    PendingSends* pending = nullptr;
  };
  Loan lend(int worker);

  // `worker` has shown, by its next message, that it has read what was lent to it. Not to be called for a lost worker:
  // its transport alone knows when the bytes are let go.
  void returned(int worker);

  // Begins an update of all weights: read each element at `from`, write it at `to`. In place they are the same memory;
  // else every element of `to` must be written. What is at `to` is current from now on. Fails as `allocate` and
  // `settle` do.
  struct Update {
    std::span<const float> from;
    std::span<float> to;
    bool in_place() const { return from.data() == to.data(); }
  };
  Result<Update> begin_update();

  std::size_t count() const { return buffers_.size(); }
  // Updates that were not in place.
  std::int64_t copies() const { return copies_; }

 private:
  struct Buffer {
    std::span<float> weights;
    PendingSends pending;
    int readers = 0;  // workers that it is lent to
  };

  bool is_writable(const Buffer& buffer) const { return buffer.readers == 0 || buffer.pending.none(); }
  Result<std::size_t> choose();

  Allocate allocate_;
  Settle settle_;
  std::deque<Buffer> buffers_;  // loans keep addresses of its elements
  std::size_t current_ = 0;
  std::vector<Buffer*> lent_;  // by worker; null: nothing
  std::int64_t copies_ = 0;
};

}  // namespace syncopate::ps
