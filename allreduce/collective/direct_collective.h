// The direct collective: ranks of one host work on each other's buffers, which lie in memory that all of them map.
//
//   all ranks enter: their buffers are ready
//   rank r sums part r of all buffers, in rank order, and writes the sum to part r of all buffers
//   all ranks leave: all parts are complete
//
// Every element of every buffer is read once and written once, which is the least that an allreduce can do in memory,
// and no rank waits more than twice. Small buffers need to wait only once (direct_board.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "allreduce/collective.h"
#include "common/transport/make_transport.h"

namespace syncopate::allreduce {

class DirectCollective : public Collective {
 public:
  // Given where this rank's part begins in each rank's buffer, in the order of ranks, and how many elements it has:
  // may overwrite the part in all buffers. No other rank touches it meanwhile.
  using PartFunction = std::function<Status(std::span<float* const> parts, std::size_t count)>;

  // Like all_reduce, but the first `owners` ranks own a part each, and do with it what `work` says; for the other ranks
  // it is called with no elements. `owners` is 1 to size(), the same on all ranks. A failure of `work` is returned.
  virtual Status all_reduce_by_parts(std::span<float> buffer, std::size_t owners, const PartFunction& work,
                                     TimePoint deadline) = 0;

  // Returns the memory of `rank` that all ranks have allocated together with `buffer`, which lies in this rank's. Call
  // it after an operation of all ranks that has followed these allocations. The memory may be used as long as this
  // collective lives.
  virtual Result<std::span<float>> buffer_of(int rank, std::span<const float> buffer) = 0;
};

// Connects this rank with all others of the group, which must be on this host. Like make_transport(), but uses only the
// options run, group, rank, size, keys and patience. allocate() is an operation of all ranks, too: with the same sizes
// in the same order. In what it says of waits (missed(), waiting_for(), messages) the ranks have the numbers `called`,
// by rank; if that is empty, their own.
Result<std::unique_ptr<DirectCollective>> make_direct_collective(const TransportOptions& options,
                                                                 Rendezvous& rendezvous, TimePoint deadline,
                                                                 std::vector<int> called = {});

}  // namespace syncopate::allreduce
