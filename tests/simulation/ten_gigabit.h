// The fabric of these tests: hosts on one switch with interfaces of 10 Gb/s, 10 us apart.
#pragma once

#include <numeric>
#include <vector>

#include "simulation/fabric.h"

namespace syncopate::simulation {

inline constexpr double k10Gbit = 1.25e9;  // bytes a second
inline constexpr Duration kLatency = std::chrono::microseconds(10);

inline Fabric ten_gigabit(int hosts) {
  Fabric fabric;
  fabric.hosts = hosts;
  fabric.bytes_per_second = k10Gbit;
  fabric.latency = kLatency;
  fabric.local_bytes_per_second = 8 * k10Gbit;
  return fabric;
}

// One member of a group on each host.
inline std::vector<int> one_each(int hosts) {
  std::vector<int> all(static_cast<std::size_t>(hosts));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace syncopate::simulation
