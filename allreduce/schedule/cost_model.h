// The cost of an allreduce in the α-β-γ model (Hockney 1994; Thakur, Rabenseifner, Gropp 2005): a message of m bytes
// takes α + β·m from one rank to another, and adding m bytes to a sum takes γ·m. A rank sends one message at a time and
// receives one at a time, both at once; copies are free. What passes between hosts goes over a link that the ranks of a
// host share: its bytes follow each other, each way. Pure.
//
// The model ignores the time that a rank takes to wake, and lines of racks that are narrower than their hosts' links.
// It cannot tell `direct` on one host from a ring: they send the same messages, though `direct` waits for others twice
// and not 2(n-1) times.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "allreduce/schedule/host_traffic.h"
#include "allreduce/schedule/schedule.h"

namespace syncopate::allreduce {

struct LinkModel {
  double latency = 0;                  // α: seconds per message
  double seconds_per_byte = 0;         // β
  double reduce_seconds_per_byte = 0;  // γ
};

// What connects the ranks of a group.
struct GroupLinks {
  LinkModel inside;  // two ranks of one host, while all ranks of the host send
  LinkModel across;  // one host with the others; its ranks share the link
  // Two ranks of one host where kHierarchical sums: their shared memory, or as `inside` if it has none.
  LinkModel two_level_inside;
};
// Links of a group that has one kind alone: all ranks on one host, or on one each.
inline GroupLinks uniform_links(const LinkModel& link) { return {link, link, link}; }

// What passes at once in one round of a schedule, in parts; one is reduced while the next one moves.
struct RoundCost {
  double count = 1;      // parts
  double message = 0;    // seconds until one has moved
  double reduction = 0;  // seconds in which one is added

  double moved() const;
  double moved_and_reduced() const;
  // The same where the next round's parts follow without a pause.
  double handed_on() const;
};

// Predicts the seconds of an allreduce of S bytes among n ranks. Over one link, uncut (`segment_bytes` = 0), with p the
// largest power of two up to n and L(x) = ceil(log2(x)):
//
//   ring, direct       2(n-1)·α + 2(n-1)/n·β·S + (n-1)/n·γ·S             Thakur et al. 2005
//   halving-doubling   2·L(p)·α + 2(p-1)/p·β·S + (p-1)/p·γ·S             the same
//   doubling           L(p)·(α + β·S + γ·S)                              the same
//   both, where n > p  2α + 2β·S + γ·S more: ranks from p on are folded into others
//   binomial-tree      2·L(n)·(α + β·S) + L(n)·γ·S                       each level moves all of S, up and down
//   tree               (min(n,4) + 4(L(n)-1))·(α + β·S/2) + (2L(n)-1)·γ·S/2
//   hierarchical       on one host as direct
//
// Cut into K parts of s bytes, a round costs K·(α + β·s). Of the reductions it costs one part's, or all of them less
// the transfers of all parts but one, whichever is longer, since one part is reduced while the next one moves. Trees
// move several levels at once. In the double tree, a rank sends at most min(n,4) messages for each segment number (two
// to children, one to the parent, one in the other tree), and during that time all links are busy; before and after it
// the first segment goes up and the last one down, on each level but one past two children.
//
// On several hosts a round lasts as long as its slowest message: α + β·s inside a host, or α + β·k·s over the link of
// the host that k of them leave or enter (HostTraffic). In `direct`, a rank sends to those of its host and to all
// others, and a host of m ranks m(n-m) parts over its link. `hierarchical` is direct inside the largest host, then one
// ring of hosts for each chunk, all at once, and back.
//
// Exact, compared with simulated_time.h, if uncut ranges divide evenly: over one link ring and direct; for powers of
// two halving-doubling, doubling and binomial-tree too. All else is within a factor of 1.6 either way, but 2 for the
// uncut tree: folding disturbs the first round, and ranks of a tree that is not full begin sooner. On several hosts:
// within 2, since ranks that wait for a shared link fall behind the others of their host, and their rounds then
// overlap; but the double tree takes up to 4 times less than predicted, since all of its levels count as levels between
// hosts.
class CostModel {
 public:
  CostModel(const RanksByHost& hosts, const GroupLinks& links, std::size_t segment_bytes = 0);

  double seconds(ScheduleKind kind, std::size_t bytes) const;
  // Returns the kind that takes the least; among equals the first in ScheduleKind. kHierarchical only on several hosts
  // of which one has several ranks.
  ScheduleKind cheapest(std::size_t bytes) const;

 private:
  RoundCost round_of(double bytes, const RoundTraffic& traffic) const;
  double direct_seconds(double share) const;
  double fold_seconds(double bytes) const;
  double halving_doubling_seconds(double bytes) const;
  double doubling_seconds(double bytes) const;
  double binomial_seconds(double bytes) const;
  double tree_seconds(double half) const;
  double hierarchical_seconds(double bytes) const;

  GroupLinks links_;
  std::size_t segment_bytes_;
  std::vector<std::size_t> ranks_of_hosts_;
  std::set<std::size_t> sizes_of_hosts_;  // the different ones
  int size_;
  // Counted once, since they do not depend on the bytes.
  RoundTraffic ring_, double_tree_;
  std::optional<RoundTraffic> fold_;
  std::vector<RoundTraffic> by_distance_, by_level_;
};

// All of a group's ranks on one host.
RanksByHost one_host(int ranks);

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
