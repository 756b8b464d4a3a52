// What the processors of a machine were busy with while a run lasted, and whether that spoils its times.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"

namespace syncopate::experiments {

// Of the cores of this host that the run could use. Shares are parts of these cores' time, 0 to 1; what the system does
// not tell is empty.
struct MachineLoad {
  double seconds = 0;             // that were observed
  double cores = 0;               // that the run could use: its affinity, cut by its group's quota
  int workers = 0;                // of the run, that compute on these cores
  std::optional<double> own;      // share that the run itself used
  std::optional<double> others;   // share that other processes of this system used
  std::optional<double> steal;    // share that other systems of the same hardware took away
  std::optional<double> waiting;  // part of the time in which some process was ready and had to wait for a core
  std::optional<double> load_before, load_after;  // mean of processes that are ready or run, over the last minute
  std::optional<double> mhz_before, mhz_after;    // mean of the cores
  std::string governor;                           // of their frequency; empty where it cannot be read
};

// Counters at one moment.
struct MachineReading {
  TimePoint at{};
  double cores = 0;
  std::optional<double> busy, steal;  // seconds of all cores in the affinity, since the system began
  double own = 0;                     // seconds that this process and its ended children have computed
  std::optional<double> waiting;      // seconds, since the system began
  std::optional<double> load, mhz;
  std::string governor;
};

MachineReading read_machine();

// Between a reading before the run's processes were started and one after they have ended. `workers` compute on this
// host's cores.
MachineLoad load_between(const MachineReading& before, const MachineReading& after, int workers);

// Why the times of a run are not what they would be on cores of its own.
struct MachineTrouble {
  enum class Kind { kOthers, kSteal, kMoreWorkersThanCores } kind;
  double size = 0;   // to find the worst of a kind by
  std::string text;  // a sentence
};

// Others above 5 % of the cores, steal above 1 %, and more workers than cores where these cores were busy: workers that
// sleep instead of computing (--straggler=all:+30) take none away from each other.
std::vector<MachineTrouble> troubles_of(const MachineLoad& load);

// "4 workers on 2 cores: own 93 %, others 2 %, steal 0 % of their time; load average 1.2 before, 3.9 after"
std::string to_text(const MachineLoad& load);

// The parts that read_machine() reads, of the texts that Linux gives. Empty where they are not as they should be.
struct CoreTimes {
  double busy = 0, steal = 0;  // seconds
};
// Of /proc/stat, summed over the cores `of`, `ticks` being a second.
std::optional<CoreTimes> core_times(std::string_view proc_stat, const std::vector<int>& of, double ticks);
// Of /proc/pressure/cpu: seconds in which some process waited.
std::optional<double> waiting_seconds(std::string_view pressure);
// Of cpu.max, or of cpu.cfs_quota_us and cpu.cfs_period_us with a blank between: cores; empty for no limit, too.
std::optional<double> quota_cores(std::string_view quota_and_period);
// Of /proc/cpuinfo: the mean over cores.
std::optional<double> mean_mhz(std::string_view cpuinfo);

}  // namespace syncopate::experiments
