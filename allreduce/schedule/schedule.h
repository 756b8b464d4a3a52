// Schedule: what one rank does in a collective, as data. Pure: rank, size and length in, a list of steps out.
// schedule/algorithms.h describes each algorithm and its cost.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "common/param_layout.h"
#include "common/status.h"

namespace syncopate::allreduce {

struct SendPart {
  int peer = 0;  // this rank itself: a contribution that is added in its turn
  Range range;   // elements of the buffer, with their values at the time of sending
  // Whether a later step may change the range before the peer has read it. A copy is then sent; all other parts may be
  // read from the buffer in place, at any time until they are received.
  bool copied = false;
};

struct ReceivePart {
  enum class Then { kReduce, kCopy };  // add into the buffer, or overwrite it

  int peer = 0;
  Range range;
  Then then = Then::kCopy;
};

// First sends, without waiting, then receives, waiting. Steps are carried out in order; parts from one rank to another
// are received in the order in which they are sent.
struct ScheduleStep {
  std::optional<SendPart> send;
  std::optional<ReceivePart> receive;
};

using Schedule = std::vector<ScheduleStep>;

// Schedules complete even if a rank waits whenever it has this many parts in flight to one peer.
inline constexpr std::size_t kMaxPartsUnderWay = 16;

enum class ScheduleKind { kRing, kHalvingDoubling, kDoubling, kTree, kBinomialTree, kDirect, kHierarchical };

inline constexpr ScheduleKind kAllScheduleKinds[] = {
    ScheduleKind::kRing,         ScheduleKind::kHalvingDoubling, ScheduleKind::kDoubling,    ScheduleKind::kTree,
    ScheduleKind::kBinomialTree, ScheduleKind::kDirect,          ScheduleKind::kHierarchical};

// "ring", "halving-doubling", "doubling", "tree", "binomial-tree", "direct", "hierarchical"
const char* name_of(ScheduleKind kind);
// Fails with invalid argument for any other text.
Result<ScheduleKind> parse_schedule_kind(std::string_view text);

// The ranks of each host; every rank once.
using RanksByHost = std::vector<std::vector<int>>;

// Leaves the sum over all ranks in every rank's buffer, with the same bits. No part is larger than `segment` elements
// (rounded up to kAlignment; 0: as large as the algorithm makes them); the sums do not depend on it. `hosts` is used by
// kHierarchical only; empty means one host.
Schedule all_reduce_schedule(ScheduleKind kind, int rank, int size, std::size_t length, std::size_t segment = 0,
                             const RanksByHost& hosts = {});

// The two halves of an all_reduce, between which each rank owns a part (own_part): after the first it holds the sum
// over all ranks, and what is elsewhere in the buffer does not matter; the second copies each rank's part to all. The
// sums have the bits of the all_reduce of the same kind if that is kRing or kDirect; other kinds go as kRing does.
Schedule reduce_scatter_schedule(ScheduleKind kind, int rank, int size, std::size_t length, std::size_t segment = 0);
Schedule all_gather_schedule(ScheduleKind kind, int rank, int size, std::size_t length, std::size_t segment = 0);
// Parts are disjoint and cover the buffer; one may be empty.
Range own_part(ScheduleKind kind, int rank, int size, std::size_t length);

// Leaves the sum of two ranks' buffers in both, with the same bits. No other rank takes part.
Schedule pair_schedule(int rank, int partner, std::size_t length, std::size_t segment = 0);

// Copies the root's buffer to every rank's.
Schedule broadcast_schedule(int rank, int size, std::size_t length, int root, std::size_t segment = 0);

// No rank finishes before all have entered.
Schedule barrier_schedule(int rank, int size);

}  // namespace syncopate::allreduce
