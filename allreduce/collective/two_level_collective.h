// The two-level collective: the schedule `hierarchical`, but ranks of one host sum in memory that they share, and only
// what passes between hosts is sent.
//
//   ranks of a host enter: their buffers are ready
//   the rank that owns chunk q sums chunk q of its host's buffers, in the order of ranks, piece by piece; rings it with
//     the owners on the other hosts; writes the sum to chunk q of its host's buffers
//   ranks of a host leave: all chunks are complete
//
// Pieces are summed, travel and are written at the same time (PartwiseSum). The sums have the same bits as those of the
// schedule over one wire. All operations but all_reduce go over the transport alone.
#pragma once

#include <memory>

#include "allreduce/collective.h"
#include "allreduce/collective/direct_collective.h"
#include "allreduce/collective/schedule_collective.h"
#include "common/transport/transport.h"

namespace syncopate::allreduce {

// `inside` connects the ranks of this host, in the order of options.ranks_by_host; `transport` connects all, and must
// be a wire that carries bytes, not shared memory, since it sends from the memory of `inside`. Both must outlive the
// collective, and `inside` the transport. All ranks must give the same options, whose kind is not used.
std::unique_ptr<Collective> make_two_level_collective(DirectCollective& inside, Transport& transport,
                                                      const ScheduleOptions& options);

}  // namespace syncopate::allreduce
