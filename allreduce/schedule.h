// Schedule: what one rank does in a collective, as data. Pure: rank, size and length in, a list of steps out.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "common/param_layout.h"

namespace syncopate::allreduce {

struct SendPart {
  int peer = 0;
  Range range;  // elements of the buffer
};

struct ReceivePart {
  enum class Then { kReduce, kCopy };  // add into the buffer, or overwrite it

  int peer = 0;
  Range range;
  Then then = Then::kCopy;
};

// A step sends and receives at the same time; the next begins when its receive has been carried out. A range that is
// empty is still sent and received, so that both ends walk the same list.
struct ScheduleStep {
  std::optional<SendPart> send;
  std::optional<ReceivePart> receive;
};

using Schedule = std::vector<ScheduleStep>;

// Sum over all ranks, left in every rank's buffer: reduce-scatter, then allgather, each in size-1 steps around the ring
// (Patarasuk and Yuan 2009, section 3). Every rank sends and receives 2·(size-1)/size of the buffer.
Schedule ring_all_reduce(int rank, int size, std::size_t length);

// The root's buffer to everyone, along a binomial tree: ceil(log2(size)) rounds.
Schedule binomial_broadcast(int rank, int size, std::size_t length, int root);

// Nobody leaves before everybody has entered: ceil(log2(size)) rounds of empty messages, in round k to the rank 2^k
// further (dissemination barrier; Hensgen, Finkel, Manber 1988).
Schedule dissemination_barrier(int rank, int size);

}  // namespace syncopate::allreduce
