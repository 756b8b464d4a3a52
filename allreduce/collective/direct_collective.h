// The direct collective: ranks of one host work on each other's buffers, which lie in memory that all of them map.
//
//   all ranks enter: their buffers are ready
//   rank r sums part r of all buffers, in rank order, and writes the sum to part r of all buffers
//   all ranks leave: all parts are complete
//
// Every element of every buffer is read once and written once, which is the least that an allreduce can do in memory,
// and no rank waits more than twice. Small buffers need to wait only once (direct_board.h).
#pragma once

#include <memory>

#include "allreduce/collective.h"
#include "common/transport/make_transport.h"

namespace syncopate::allreduce {

// Connects this rank with all others of the group, which must be on this host. Like make_transport(), but uses only the
// options run, group, rank and size. allocate() is an operation of all ranks, too: with the same sizes in the same
// order.
Result<std::unique_ptr<Collective>> make_direct_collective(const TransportOptions& options, Rendezvous& rendezvous,
                                                           TimePoint deadline);

}  // namespace syncopate::allreduce
