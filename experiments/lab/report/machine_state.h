// MachineLoad: what the processors of a machine were doing during a run, and whether that distorts its times.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "experiments/cluster/host/control_group.h"

namespace syncopate::experiments {

// The load of the cores of this host that the run could use. Shares are fractions of these cores' time, 0 to 1. Figures
// that the system does not provide are empty.
struct MachineLoad {
  double seconds = 0;            // length of the observation
  double cores = 0;              // cores that the run could use: its affinity, limited by its cgroup's quota
  std::optional<double> quota;   // that quota in cores, if it is less than its affinity
  int workers = 0;               // workers of the run on these cores
  std::optional<double> own;     // share that the run itself used
  std::optional<double> others;  // share of its affinity, whatever the quota, that other processes of this system used
  std::optional<double> steal;   // share that other systems on the same hardware took away (steal)
  std::optional<double> throttled;  // fraction of the quota's periods in which the kernel stopped the run's processes
  std::optional<double> waiting;    // fraction of the time in which some process was ready but had to wait for a core
  std::optional<double> load_before, load_after;  // load average: processes ready or running, over the last minute
  std::optional<double> mhz_before, mhz_after;    // mean over the cores
  std::string governor;                           // governor of their frequency; empty if it cannot be read
};

// The counters at one moment.
struct MachineReading {
  TimePoint at{};
  double cores = 0;                      // of the affinity
  std::optional<double> quota;           // in cores
  std::optional<Throttling> throttling;  // since the control group was made
  std::optional<double> busy, steal;     // seconds of all cores in the affinity, since the system started
  double own = 0;                        // seconds of CPU time of this process and of its children that have ended
  std::optional<double> waiting;         // seconds, since the system started
  std::optional<double> load, mhz;
  std::string governor;
};

MachineReading read_machine();

// Returns the load between a reading taken before the run's processes were started and one taken after they have ended.
// `workers` compute on this host's cores.
MachineLoad load_between(const MachineReading& before, const MachineReading& after, int workers);

// A reason why the times of a run differ from what they would be on cores of its own.
struct MachineTrouble {
  enum class Kind { kOthers, kSteal, kThrottled, kMoreWorkersThanCores } kind;
  double size = 0;   // for finding the worst of a kind
  std::string text;  // one sentence
};

// Reports other processes above 5 % of the cores, steal above 1 %, a quota that stopped the run in more than 5 % of its
// periods, and more workers than cores if these cores were
// busy: workers that sleep instead of computing do not compete.
std::vector<MachineTrouble> troubles_of(const MachineLoad& load);

// Returns a line for each trouble, "beware: ..."; empty if there is none.
std::string beware_lines(const MachineLoad& load);

// Returns "4 workers on 2 cores: own 93 %, others 2 %, steal 0 % of their time; load average 1.2 before, 3.9 after".
std::string to_text(const MachineLoad& load);

// The functions below parse the texts of Linux that read_machine() reads. They return nothing if a text is malformed.
struct CoreTimes {
  double busy = 0, steal = 0;  // seconds
};
// Parses /proc/stat and sums over the cores `of`; `ticks` is the number of ticks per second.
std::optional<CoreTimes> core_times(std::string_view proc_stat, const std::vector<int>& of, double ticks);
// Parses /proc/pressure/cpu: seconds in which some process waited.
std::optional<double> waiting_seconds(std::string_view pressure);
// Parses /proc/cpuinfo: the mean over cores.
std::optional<double> mean_mhz(std::string_view cpuinfo);

}  // namespace syncopate::experiments
