// What the processors of a machine were busy with while a run lasted.
#pragma once

#include <optional>
#include <string>

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

}  // namespace syncopate::experiments
