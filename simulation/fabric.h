// Fabric: hosts, and the links between them, as data.
#pragma once

#include <vector>

#include "common/clock.h"
#include "simulation/network.h"

namespace syncopate::simulation {

// Hosts, numbered from 0, on one switch; or in racks of equally many, each with a switch of its own, behind one switch
// for all. Every host sends and receives at once.
struct Fabric {
  int hosts = 0;
  double bytes_per_second = 0;        // of a host's interface, each way
  Duration latency{};                 // from one host to another, one way
  double local_bytes_per_second = 0;  // between processes of one host, which share it
  Duration local_latency{};
  int racks = 1;
  double oversubscription = 1;  // how many times what a rack's hosts can send is what its line to the others carries

  std::vector<Link> links() const;
  // The links from one host to another, or to itself.
  Path path(int from, int to) const;

 private:
  int hosts_per_rack() const { return (hosts + racks - 1) / racks; }
};

}  // namespace syncopate::simulation
