// WeightsPool: memory for the weights of a shard's chunks. It lets responses be sent in place while updates go on,
// since a buffer that a transport still reads must not change. Each chunk has a current buffer of its own. Buffers that
// were given up while they were being read are shared by all chunks of about that size, so that there are only as many
// of them as responses in flight.
//
// One thread.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <span>

#include "common/status.h"
#include "common/transport/transport.h"

namespace syncopate::ps {

class WeightsPool {
 public:
  // Returns zeroed memory of `elements` floats that outlives this object.
  using Allocate = std::function<Result<std::span<float>>(std::size_t elements)>;
  // Waits until `pending` is zero, which is about to happen: the reader is known to be done, and only the report is
  // under way.
  using Settle = std::function<Status(const PendingSends& pending)>;

  struct Buffer {
    std::span<float> memory;
    PendingSends pending;  // sends that read it
    int keepers = 0;       // chunks' reasons to keep what is in it
  };

  WeightsPool(Allocate allocate, Settle settle) : allocate_(std::move(allocate)), settle_(std::move(settle)) {}

  // Allocates `elements` floats at once, from which the first buffers are taken. Fails as `allocate` does.
  Status reserve(std::size_t elements);

  // Returns a buffer that nobody reads, with `memory` of at least `elements` floats. It is valid as long as the pool;
  // its contents are arbitrary. Fails as `allocate` does.
  Result<Buffer*> acquire(std::size_t elements);

  // Gives a buffer up. It is returned by acquire() again once nobody reads or keeps it.
  void give_up(Buffer* buffer) { given_up_.push_back(buffer); }

  // Calls `wait` for each buffer that was given up and is not used again, until it fails.
  Status wait_for_given_up(const Settle& wait) const {
    for (const Buffer* buffer : given_up_) SYNCOPATE_RETURN_IF_ERROR(wait(buffer->pending));
    return Status();
  }

  Status settle(const PendingSends& pending) { return settle_(pending); }

  std::size_t buffers() const { return buffers_.size(); }

 private:
  Allocate allocate_;
  Settle settle_;
  std::span<float> reserved_;
  std::deque<Buffer> buffers_;    // addresses of its elements are given out
  std::deque<Buffer*> given_up_;  // the oldest first: most likely it is read no more
};

}  // namespace syncopate::ps
