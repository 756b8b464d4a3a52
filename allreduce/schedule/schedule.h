// Schedule: what one rank does in a collective, as data. Pure: rank, size and length in, a list of steps out. What each
// algorithm does and costs stands in schedule/algorithms.h.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "common/param_layout.h"
#include "common/status.h"

namespace syncopate::allreduce {

struct SendPart {
  int peer = 0;  // this rank itself: a contribution that waits for its turn
  Range range;   // elements of the buffer, as they are when the part is sent
  // Whether a later step changes the range before the peer need have read it. Whoever carries out the schedule then
  // sends a copy; all other parts may be read from the buffer in place, at any time until they are received.
  bool copied = false;
};

struct ReceivePart {
  enum class Then { kReduce, kCopy };  // add into the buffer, or overwrite it

  int peer = 0;
  Range range;
  Then then = Then::kCopy;
};

// Sends, which does not wait, then receives, which does. Steps are carried out in order; parts from one rank to another
// are received in the order in which they are sent.
struct ScheduleStep {
  std::optional<SendPart> send;
  std::optional<ReceivePart> receive;
};

using Schedule = std::vector<ScheduleStep>;

// Schedules end also where a rank that has so many parts on their way to one peer waits before it sends another.
inline constexpr std::size_t kMaxPartsUnderWay = 16;

enum class ScheduleKind { kRing, kHalvingDoubling, kDoubling, kTree, kBinomialTree, kDirect, kHierarchical };

inline constexpr ScheduleKind kAllScheduleKinds[] = {
    ScheduleKind::kRing,         ScheduleKind::kHalvingDoubling, ScheduleKind::kDoubling,    ScheduleKind::kTree,
    ScheduleKind::kBinomialTree, ScheduleKind::kDirect,          ScheduleKind::kHierarchical};

// "ring", "halving-doubling", "doubling", "tree", "binomial-tree", "direct", "hierarchical"
const char* name_of(ScheduleKind kind);
// Invalid argument for any other text.
Result<ScheduleKind> parse_schedule_kind(std::string_view text);

// The ranks of each host; every rank once.
using RanksByHost = std::vector<std::vector<int>>;

// The sum over all ranks, left in every rank's buffer with the same bits. No part is larger than `segment` elements
// (rounded up to kAlignment; 0: as large as the algorithm makes them); the sums do not depend on it. `hosts` is for
// kHierarchical alone; empty is one host.
Schedule all_reduce_schedule(ScheduleKind kind, int rank, int size, std::size_t length, std::size_t segment = 0,
                             const RanksByHost& hosts = {});

// The sum of two ranks' buffers, left in both with the same bits; no other rank takes part.
Schedule pair_schedule(int rank, int partner, std::size_t length, std::size_t segment = 0);

// The root's buffer, in every rank's.
Schedule broadcast_schedule(int rank, int size, std::size_t length, int root, std::size_t segment = 0);

// Nobody leaves before everybody has entered.
Schedule barrier_schedule(int rank, int size);

}  // namespace syncopate::allreduce
