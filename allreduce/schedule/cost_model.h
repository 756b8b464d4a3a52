// The cost of an allreduce in the α-β-γ model (Hockney 1994; Thakur, Rabenseifner, Gropp 2005): a message of m bytes
// takes α + β·m from one rank to another, and adding m bytes to a sum takes γ·m. A rank sends one message at a time and
// receives one at a time, both at once; copies are free. Pure.
//
// The model ignores the time that a rank takes to wake, and that a host's ranks share its memory bandwidth. It cannot
// tell `direct` from a ring: they send the same messages, though `direct` waits for others twice and not 2(n-1) times.
#pragma once

#include <span>

#include "allreduce/schedule/schedule.h"

namespace syncopate::allreduce {

struct LinkModel {
  double latency = 0;                  // α: seconds per message
  double seconds_per_byte = 0;         // β
  double reduce_seconds_per_byte = 0;  // γ
};

// Returns the seconds of an allreduce of S bytes among n ranks. Uncut (`segment_bytes` = 0), with p the largest power
// of two up to n and L(x) = ceil(log2(x)):
//
//   ring, direct       2(n-1)·α + 2(n-1)/n·β·S + (n-1)/n·γ·S             Thakur et al. 2005
//   halving-doubling   2·L(p)·α + 2(p-1)/p·β·S + (p-1)/p·γ·S             the same
//   doubling           L(p)·(α + β·S + γ·S)                              the same
//   both, where n > p  2α + 2β·S + γ·S more: ranks from p on are folded into others
//   binomial-tree      2·L(n)·(α + β·S) + L(n)·γ·S                       each level moves all of S, up and down
//   tree               (min(n,4) + 4(L(n)-1))·(α + β·S/2) + (2L(n)-1)·γ·S/2
//   hierarchical       as direct: one host
//
// Cut into K parts of s bytes, a round costs K·(α + β·s). Of the reductions it costs one part's, or all of them less
// the transfers of all parts but one, whichever is longer, since one part is reduced while the next one moves. Trees
// move several levels at once. In the double tree, a rank sends at most min(n,4) messages for each segment number (two
// to children, one to the parent, one in the other tree), and during that time all links are busy; before and after it
// the first segment goes up and the last one down, on each level but one past two children.
//
// Exact, compared with simulated_time.h, if uncut ranges divide evenly: ring and direct; for powers of two
// halving-doubling, doubling and binomial-tree too. All else is within a factor of 1.6 either way, but 2 for the uncut
// tree: folding disturbs the first round, and ranks of a tree that is not full begin sooner.
double predicted_seconds(ScheduleKind kind, int size, std::size_t bytes, const LinkModel& link,
                         std::size_t segment_bytes = 0);

// Returns the same for `hosts` hosts with `ranks` ranks each: reduce-scatter and allgather inside, as direct, and
// between hosts a ring for each chunk, all at once and each as fast as `across` says.
double predicted_hierarchical_seconds(int hosts, int ranks, std::size_t bytes, const LinkModel& inside,
                                      const LinkModel& across, std::size_t segment_bytes = 0);

// Returns the kind whose prediction is lowest; among equals the first in ScheduleKind. Never kHierarchical.
ScheduleKind choose_schedule(int size, std::size_t bytes, const LinkModel& link, std::size_t segment_bytes = 0);

// The time that a message of `bytes` took one way.
struct TransferSample {
  std::size_t bytes = 0;
  double seconds = 0;
};

// Fits α and β by least squares of the relative errors, so that short messages count as much as long ones; neither is
// negative. γ is left at zero. Fails with invalid argument without two different sizes, or with a time that is not
// positive.
Result<LinkModel> fit_link(std::span<const TransferSample> samples);

}  // namespace syncopate::allreduce
