// The two-level collective: the schedule `hierarchical`, but ranks of one host sum in memory that they share, and only
// what passes between hosts is sent.
//
//   ranks of a host enter: their buffers are ready
//   the rank that owns chunk q sums chunk q of its host's buffers, in the order of ranks, piece by piece; rings it with
//     the owners on the other hosts; writes the sum to chunk q of its host's buffers
//   ranks of a host leave: all chunks are complete
//
// Pieces are summed, travel and are written at the same time (PartwiseSum). The sums have the same bits as those of the
// schedule over one wire. Sums by other schedules, and all operations but all_reduce, go over the wire alone.
#pragma once

#include <memory>

#include "allreduce/collective.h"
#include "allreduce/collective/direct_collective.h"
#include "allreduce/collective/schedule_collective.h"

namespace syncopate::allreduce {

// `all` connects all ranks, knows their hosts, and says which sums are hierarchical (ScheduleCollective::kind_for); its
// transport must be a wire that carries bytes, not shared memory, since it sends from the memory of `inside`. `inside`
// connects the ranks of this host, in the order of all->ranks_by_host(); it must outlive the collective and the
// transport.
std::unique_ptr<Collective> make_two_level_collective(DirectCollective& inside,
                                                      std::unique_ptr<ScheduleCollective> all);

}  // namespace syncopate::allreduce
