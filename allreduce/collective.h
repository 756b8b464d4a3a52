// Collective: operations that all ranks of a group carry out together. Every rank calls the same operations in the same
// order with buffers of the same length; only reduce_pair is between two ranks. One thread per instance.
#pragma once

#include <cstddef>
#include <span>

#include "common/clock.h"
#include "common/param_layout.h"
#include "common/status.h"
#include "common/transport/transport.h"

namespace syncopate::allreduce {

using Bytes = std::span<const std::byte>;

class Collective {
 public:
  virtual ~Collective() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // "ring", "direct", "mpi"
  virtual const char* name() const = 0;
  // Whether all of an operation's time is processors' time: the ranks, on one host, work on each other's memory. A
  // thread that does it beside compute then gains nothing unless a core is left.
  virtual bool works_in_memory() const { return false; }

  // Returns zeroed memory, aligned to a cache line, that the operations work on in place. It lives as long as the
  // collective.
  virtual Result<std::span<float>> allocate(std::size_t elements) = 0;

  // Leaves the sum over all ranks in every rank's buffer, in place. When it returns, the buffer is the caller's again.
  // `buffer` must lie in memory from allocate(). On failure its contents are undefined.
  virtual Status all_reduce(std::span<float> buffer, TimePoint deadline) = 0;
  // The two halves of an all_reduce, between which each rank owns a part of the buffer: reduce_scatter leaves the sum
  // over all ranks in own_part() alone, and anything elsewhere; all_gather copies each rank's part to every rank's
  // buffer. Under the schedules ring and direct the sums have the bits of all_reduce. Otherwise like all_reduce. They
  // fail with invalid argument in a collective that has no such halves.
  virtual Status reduce_scatter(std::span<float> buffer, TimePoint deadline);
  virtual Status all_gather(std::span<float> buffer, TimePoint deadline);
  // This rank's part of a buffer of so many elements. All ranks' parts are disjoint and cover it; one may be empty.
  virtual Range own_part(std::size_t length) const;
  // Copies the root's buffer to every rank's.
  virtual Status broadcast(std::span<float> buffer, int root, TimePoint deadline) = 0;
  // Returns only once every rank has entered.
  virtual Status barrier(TimePoint deadline) = 0;

  // Leaves the sum of this rank's buffer and the partner's in both, in place and with the same bits; otherwise like
  // all_reduce. Both ranks call it with each other, in the same order as their other common operations. Other ranks do
  // not take part.
  virtual Status reduce_pair(std::span<float> buffer, int partner, TimePoint deadline) = 0;

  // Sends given[r] to rank r and receives taken[r] from it. Lengths may differ, and only the giver needs to know them;
  // taken[rank()] is given[rank()]. With the same bytes for every rank this is an allgather. What is given to other
  // ranks must lie in memory from allocate(), and must begin on a cache line if it is to be received on one. It must
  // not change until the next operation of all ranks has returned, since others may read it in place: a caller that
  // gives something each time uses two buffers in turn. What is taken is valid until this rank's next operation.
  virtual Status all_to_all(std::span<const Bytes> given, std::span<Bytes> taken, TimePoint deadline) = 0;

  // The rank that is being waited for right now; -1 for none, or if it is unknown. Any thread.
  virtual int waiting_for() const { return -1; }

  // After an operation has failed: the rank that it waited for; -1 for none, or if it is unknown. On the thread that
  // called the operation.
  int missed() const { return missed_; }

  // Makes current and future waits return cancelled, if the wire can be interrupted. Any thread.
  virtual void interrupt() = 0;

  // The payload bytes that this rank has sent and received so far.
  virtual TransportCounters counters() const = 0;

 protected:
  // Fails with invalid argument unless the partner of a reduce_pair is another rank of the group.
  Status check_partner(int partner) const;

  // Returns `status`; a failure is that of a wait for `rank`.
  Status waited_for(int rank, Status status) {
    if (!status.ok()) missed_ = rank;
    return status;
  }

 private:
  int missed_ = -1;
};

}  // namespace syncopate::allreduce
