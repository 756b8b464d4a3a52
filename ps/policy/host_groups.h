// HostGroups: which workers of a job share a host, and who pushes for them. Pure.
//
// A synchronous update sums gradients host by host: those of a host in the order of ranks, then these sums in the order
// of hosts. So the bits are the same whether each worker pushes its own gradient or one of each host pushes the sum
// (aggregation inside a host, as BytePS does: Jiang et al. 2020, "A unified architecture for accelerating distributed
// DNN training in heterogeneous GPU/CPU clusters", section 4).
#pragma once

#include <cstddef>
#include <vector>

namespace syncopate::ps {

class HostGroups {
 public:
  // All workers are on one host, and each pushes its own gradient.
  HostGroups() = default;
  // `workers_by_host`: how many workers each host has, at least one; workers fill hosts in order. `aggregated`: the
  // lowest worker of each host alone pushes, for all of its host.
  HostGroups(const std::vector<int>& workers_by_host, bool aggregated);

  bool aggregated() const { return aggregated_; }
  // Returns the index of the worker's host.
  int host_of(int worker) const { return places_.empty() ? 0 : place_of(worker).host; }
  // Returns the worker that pushes what `worker` has: itself, or the lowest of its host.
  int pusher_for(int worker) const { return aggregated_ ? place_of(worker).lowest : worker; }
  // Returns how many workers' gradients a push of `worker`, which is one that pushes, is the sum of.
  int gradients_in_push(int worker) const { return aggregated_ ? place_of(worker).workers : 1; }

 private:
  struct Place {
    int host = 0;
    int lowest = 0;   // worker of its host
    int workers = 1;  // of its host
  };
  const Place& place_of(int worker) const { return places_[static_cast<std::size_t>(worker)]; }

  std::vector<Place> places_;  // by worker; empty: all are on one host
  bool aggregated_ = false;
};

}  // namespace syncopate::ps
