// The most processes of each role that a run may have. Ranks are 32-bit numbers on every wire, and nothing is an array
// or a mask of fixed size: these limits are as far as plans, schedules and the coordinator are tested.
#pragma once

namespace syncopate {

inline constexpr int kMostWorkers = 1024;
inline constexpr int kMostServers = 1024;

}  // namespace syncopate
