// What the kernel's control groups (v1 and v2) let this process have, and what they have done to it. Figures that the
// system does not tell are empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace syncopate::experiments {

// Returns how many cores' time its group has: the least quota of its own and of those above; empty also for no limit.
std::optional<double> core_quota();

// The periods in which the group could use its quota, and in how many of them the kernel stopped it, since it was made.
struct Throttling {
  double periods = 0;
  double throttled = 0;
};
// Returns those of the group with the least quota; empty also where there is none.
std::optional<Throttling> throttling();

// Returns how many processes of its group the kernel has killed because memory ran out, the group's or the host's.
std::optional<std::int64_t> oom_kills();

// Tells of processes of the group that were killed since it was made whether the kernel has done that to get memory.
class OomKills {
 public:
  OomKills() : counted_(oom_kills()) {}
  // Call it once for each process that SIGKILL has ended.
  bool explain_one();

 private:
  std::optional<std::int64_t> counted_;  // those that have explained an end, and those before
};

// Pure: parse cpu.max ("150000 100000", "max 100000"), or cpu.cfs_quota_us and cpu.cfs_period_us with a blank between,
// and return cores; empty for no limit.
std::optional<double> quota_cores(std::string_view quota_and_period);
// Pure: parse cpu.stat.
std::optional<Throttling> throttling_in(std::string_view cpu_stat);
// Pure: parse memory.events, or memory.oom_control.
std::optional<std::int64_t> oom_kills_in(std::string_view memory_events);

}  // namespace syncopate::experiments
