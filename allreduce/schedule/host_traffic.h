// How many messages of a schedule's rounds share the link of one host. Pure.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "allreduce/schedule/schedule.h"

namespace syncopate::allreduce {

// Messages of the same length that are sent at the same time.
struct RoundTraffic {
  bool inside = false;  // whether some pass between ranks of one host
  int over_link = 0;    // how many leave the host that most leave, or enter the one that most enter
};

// The rounds of each schedule among ranks that lie on hosts.
class HostTraffic {
 public:
  // Every rank from 0 on is on one host.
  explicit HostTraffic(const RanksByHost& hosts);

  int size() const { return static_cast<int>(host_of_.size()); }

  // Each rank sends to the next one.
  RoundTraffic ring() const;
  // The rounds of distances 1, 2, 4, ... among the largest power of two of ranks, as halving-doubling and doubling have
  // them.
  std::vector<RoundTraffic> by_distance() const;
  // Ranks from that power on send to those that stand for them. None if there are none.
  std::optional<RoundTraffic> fold() const;
  // The rounds of a binomial tree, from the root on.
  std::vector<RoundTraffic> by_level() const;
  // All messages of one segment number in the double tree: in both trees, up and down.
  RoundTraffic double_tree() const;

 private:
  class Count;
  // peer_of(rank) is whom the rank sends to; -1 for nobody.
  RoundTraffic round(const std::function<int(int rank)>& peer_of) const;

  std::vector<std::size_t> host_of_;  // by rank
  std::size_t hosts_ = 0;
};

}  // namespace syncopate::allreduce
