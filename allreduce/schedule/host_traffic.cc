#include "allreduce/schedule/host_traffic.h"

#include <algorithm>
#include <bit>

#include "allreduce/schedule/tree.h"

namespace syncopate::allreduce {

class HostTraffic::Count {
 public:
  explicit Count(const HostTraffic& traffic) : host_of_(traffic.host_of_), out_(traffic.hosts_), in_(traffic.hosts_) {}

  void add(int from, int to) {
    const std::size_t sender = host_of_[static_cast<std::size_t>(from)];
    const std::size_t receiver = host_of_[static_cast<std::size_t>(to)];
    if (sender == receiver) {
      inside_ = true;
      return;
    }
    ++out_[sender];
    ++in_[receiver];
  }
  RoundTraffic total() const {
    return {.inside = inside_, .over_link = std::max(std::ranges::max(out_), std::ranges::max(in_))};
  }

 private:
  const std::vector<std::size_t>& host_of_;
  bool inside_ = false;
  std::vector<int> out_, in_;  // messages to and from other hosts, by host
};

HostTraffic::HostTraffic(const RanksByHost& hosts) : hosts_(hosts.size()) {
  std::size_t size = 0;
  for (const std::vector<int>& ranks : hosts) size += ranks.size();
  host_of_.resize(size);
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    for (const int rank : hosts[host]) host_of_[static_cast<std::size_t>(rank)] = host;
  }
}

RoundTraffic HostTraffic::round(const std::function<int(int rank)>& peer_of) const {
  Count count(*this);
  for (int rank = 0; rank < size(); ++rank) {
    if (const int peer = peer_of(rank); peer >= 0) count.add(rank, peer);
  }
  return count.total();
}

RoundTraffic HostTraffic::ring() const {
  return round([this](int rank) { return (rank + 1) % size(); });
}

std::vector<RoundTraffic> HostTraffic::by_distance() const {
  const auto power = static_cast<int>(std::bit_floor(host_of_.size()));
  std::vector<RoundTraffic> rounds;
  for (int distance = 1; distance < power; distance *= 2) {
    rounds.push_back(round([&](int rank) { return rank < power ? rank ^ distance : -1; }));
  }
  return rounds;
}

std::optional<RoundTraffic> HostTraffic::fold() const {
  const auto power = static_cast<int>(std::bit_floor(host_of_.size()));
  if (power == size()) return std::nullopt;
  return round([&](int rank) { return rank < power ? -1 : rank - power; });
}

std::vector<RoundTraffic> HostTraffic::by_level() const {
  const Tree tree = binomial_tree(size());
  std::vector<RoundTraffic> rounds;
  for (int level = 0; level < tree.rounds; ++level) {
    rounds.push_back(round([&](int rank) {
      const auto place = static_cast<std::size_t>(rank);
      return tree.round[place] == level ? tree.parent[place] : -1;
    }));
  }
  return rounds;
}

RoundTraffic HostTraffic::double_tree() const {
  const Tree tree = binary_tree(size());
  Count count(*this);
  for (int place = 1; place < size(); ++place) {
    const int parent = tree.parent[static_cast<std::size_t>(place)];
    const auto up_and_down = [&](int lower, int upper) {
      count.add(lower, upper);
      count.add(upper, lower);
    };
    up_and_down(place, parent);
    up_and_down(rank_in_second_tree(place, size()), rank_in_second_tree(parent, size()));
  }
  return count.total();
}

}  // namespace syncopate::allreduce
