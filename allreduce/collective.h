// Collective: operations that all ranks of a group carry out together. Every rank calls the same operations in the same
// order with buffers of the same length; reduce_pair alone is a matter of two. One thread an instance.
#pragma once

#include <cstddef>
#include <span>

#include "common/clock.h"
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

  // Zeroed memory, aligned to a cache line, that the operations work on in place; lives as long as the collective.
  virtual Result<std::span<float>> allocate(std::size_t elements) = 0;

  // The sum over all ranks, in every rank's buffer, in place. After it, the buffer is the caller's again. `buffer` must
  // lie in memory from allocate(). On failure its contents are undefined.
  virtual Status all_reduce(std::span<float> buffer, TimePoint deadline) = 0;
  // The root's buffer, in every rank's.
  virtual Status broadcast(std::span<float> buffer, int root, TimePoint deadline) = 0;
  // Nobody leaves before everybody has entered.
  virtual Status barrier(TimePoint deadline) = 0;

  // The sum of this rank's buffer and the partner's, in both, in place and with the same bits; else as all_reduce. Both
  // call it with each other, in the same order as their other operations together. Other ranks do not take part.
  virtual Status reduce_pair(std::span<float> buffer, int partner, TimePoint deadline) = 0;

  // Gives given[r] to rank r and takes taken[r] from it, whatever their lengths, which only the giver needs to know;
  // taken[rank()] is given[rank()]. The same bytes for every rank make it an allgather. What is given lies in memory
  // from allocate(), but for the own, and begins on a cache line if it is to be taken on one. It stays as it is until
  // the next operation of all ranks has returned, since others may read it in place: who gives something each time
  // uses two buffers in turn. What is taken is valid until this rank's next operation.
  virtual Status all_to_all(std::span<const Bytes> given, std::span<Bytes> taken, TimePoint deadline) = 0;

  // The rank that is being waited for right now; -1 if none is, or it cannot be told. Any thread.
  virtual int waiting_for() const { return -1; }

  // Makes waits under way and to come return cancelled, where the wire can be interrupted. Any thread.
  virtual void interrupt() = 0;

  // Payload bytes that this rank has sent and received so far.
  virtual TransportCounters counters() const = 0;

 protected:
  // Invalid argument unless the partner of a reduce_pair is another rank of the group.
  Status check_partner(int partner) const;
};

}  // namespace syncopate::allreduce
