// The algorithms of all_reduce_schedule, each for one rank; `segment` as there. n ranks, S is the buffer.
//
// Costs are given as messages (uncut) and as a share of the buffer, per rank. Parts without elements are not sent.
#pragma once

#include <span>

#include "allreduce/schedule/schedule.h"

namespace syncopate::allreduce {

// Reduce-scatter, then allgather, each in n-1 steps around the ring (Patarasuk and Yuan 2009, section 3). Every rank
// sends 2(n-1) messages, 2(n-1)/n of S.
Schedule ring_all_reduce(int rank, int size, std::size_t length, std::size_t segment);

// Its halves: after the first, rank r has the sums of chunk r+1, of n that are alike but for alignment (own_part).
// Every rank sends n-1 messages, (n-1)/n of S.
Schedule ring_reduce_scatter(int rank, int size, std::size_t length, std::size_t segment);
Schedule ring_all_gather(int rank, int size, std::size_t length, std::size_t segment);

// Appends to `schedule` ring_all_reduce among `members`, of which this rank is the one at `place`, for `range` alone.
void append_ring(Schedule& schedule, std::span<const int> members, int place, Range range, std::size_t segment);

// Reduce-scatter by recursive halving, allgather by recursive doubling (Thakur, Rabenseifner, Gropp 2005, on
// allreduce), but the halving begins with the nearest rank and the doubling ends with it, so that large parts pass
// between neighbours: of h hosts of m ranks behind each other, both powers of two, a host's link carries 2(h-1)/h of S.
// Every rank sends 2·log2(n) messages, 2(n-1)/n of S. If n is no power of two, the ranks from the largest
// power p < n on each send all they have to a rank below, and receive the sum in the end: each of these pairs sends S
// more in either direction, and the rest is as for p.
Schedule halving_doubling_all_reduce(int rank, int size, std::size_t length, std::size_t segment);

// Recursive doubling: in round k, ranks 2^k apart exchange all they have (Thakur et al. 2005, on short allreduces).
// Every rank sends log2(n) messages, log2(n)·S; other n as above. Parts are copied, since a rank adds into what its
// partner may not have read yet.
Schedule doubling_all_reduce(int rank, int size, std::size_t length, std::size_t segment);

// Every rank sends part q of the buffer to rank q, which sums in rank order, ((x0+x1)+x2)+..., and sends the sum to
// all. Every rank sends 2(n-1) messages, 2(n-1)/n of S, but waits for others only twice. (Reduce-scatter by pairwise
// exchange, Thakur et al. 2005, then the same in reverse.)
Schedule direct_all_reduce(int rank, int size, std::size_t length, std::size_t segment);

// Its halves: rank r has the sums of chunk r. Every rank sends n-1 messages, (n-1)/n of S.
Schedule direct_reduce_scatter(int rank, int size, std::size_t length, std::size_t segment);
Schedule direct_all_gather(int rank, int size, std::size_t length, std::size_t segment);

// Up a binomial tree to rank 0, then down it again: 2·ceil(log2(n)) rounds. All of S goes over each edge twice, which
// makes 2(n-1) messages. (A reduce and a broadcast, Thakur et al. 2005.)
Schedule binomial_tree_all_reduce(int rank, int size, std::size_t length, std::size_t segment);

// Double binary tree (Sanders, Speck, Träff 2009): half of S goes up and down one binary tree, the other half another
// tree whose inner ranks are leaves of the first. S is cut into segments, so that all levels work at once. 4(n-1)
// messages and 2(n-1)·S in all; no rank sends more than 4 messages, 2·S.
Schedule tree_all_reduce(int rank, int size, std::size_t length, std::size_t segment);

// Returns which host the rank is on.
std::size_t host_of(int rank, const RanksByHost& hosts);

// What a rank owns of a buffer that hosts sum together: there are as many chunks as the smallest host has ranks, and
// the first ranks of each host own one each.
struct OwnedChunk {
  Range range;              // without elements if this rank owns none
  std::vector<int> owners;  // of the same chunk, one on each host, in the order of hosts; empty if this rank owns none
  int host = 0;             // of this rank
  int place = 0;            // of this rank on its host
};
OwnedChunk owned_chunk(int rank, std::size_t length, const RanksByHost& hosts);
// Returns the number of those chunks.
std::size_t owners_on_each_host(const RanksByHost& hosts);

// Reduce-scatter inside each host, a ring of each chunk's owners across hosts, and allgather inside; inside as
// `direct`. There are as many chunks as the smallest host has ranks, m; ranks beyond the first m of a host only send
// their buffer and receive the sum. On h hosts of m ranks each, a rank sends 2(m-1)/m of S inside its host and 2(h-1)/h
// of S/m to others. On one host this is `direct`; with one rank per host it is a ring.
Schedule hierarchical_all_reduce(int rank, std::size_t length, std::size_t segment, const RanksByHost& hosts);

}  // namespace syncopate::allreduce
