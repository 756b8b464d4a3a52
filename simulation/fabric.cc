#include "simulation/fabric.h"

namespace syncopate::simulation {
namespace {

Tick ticks(Duration duration) { return duration.count() * 1000; }

}  // namespace

// Three for each host (out, in, within it), then two for each rack (up, down).
std::vector<Link> Fabric::links() const {
  std::vector<Link> links;
  for (int host = 0; host < hosts; ++host) {
    links.push_back({bytes_per_second, ticks(latency)});
    links.push_back({bytes_per_second, 0});
    links.push_back({local_bytes_per_second, ticks(local_latency)});
  }
  for (int rack = 0; rack < racks; ++rack) {
    const Link line{bytes_per_second * hosts_per_rack() / oversubscription, 0};
    links.push_back(line);
    links.push_back(line);
  }
  return links;
}

Path Fabric::path(int from, int to) const {
  if (from == to) return {3 * from + 2};
  const int out = 3 * from, in = 3 * to + 1;
  const int from_rack = from / hosts_per_rack(), to_rack = to / hosts_per_rack();
  if (from_rack == to_rack) return {out, in};
  return {out, 3 * hosts + 2 * from_rack, 3 * hosts + 2 * to_rack + 1, in};
}

}  // namespace syncopate::simulation
