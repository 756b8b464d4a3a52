// The direct collective: ranks of one host work on each other's buffers, which lie in memory that all of them map.
//
//   everybody enters: its buffer is ready
//   rank r sums part r of all buffers, in the order of ranks, and writes the sum to part r of all buffers
//   everybody leaves: all parts are there
//
// Every element of every buffer is read once and written once, which is the least that an allreduce can do in memory,
// and nobody waits more than twice. Small buffers need one meeting only (direct_board.h).
#pragma once

#include <memory>

#include "allreduce/collective.h"
#include "common/transport/make_transport.h"

namespace syncopate::allreduce {

// Connects this rank with all others of the group, which must be on this host. As make_transport(), of whose options
// only run, group, rank and size count. allocate() is an operation of all ranks, too: with the same sizes in the same
// order.
Result<std::unique_ptr<Collective>> make_direct_collective(const TransportOptions& options, Rendezvous& rendezvous,
                                                           TimePoint deadline);

}  // namespace syncopate::allreduce
