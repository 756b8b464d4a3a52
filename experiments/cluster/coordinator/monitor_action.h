// What RunMonitor wants done. The coordinator carries the actions out in their order, and decides nothing itself.
#pragma once

#include <cstddef>
#include <string>
#include <variant>

namespace syncopate::experiments {

// `process` is an index into the plan's processes.

// Ask every process that is still there to end. The reason is the verdict's line; empty: all is done.
struct StopAll {
  std::string reason;
};
// Send it SIGKILL.
struct KillProcess {
  std::size_t process;
};
// Launch it again.
struct RestartProcess {
  std::size_t process;
};
// Tell all servers that this worker is lost.
struct DropWorker {
  int rank;
};
// This worker, which was lost, takes part again.
struct AddWorker {
  int rank;
};
// Answer every worker that has asked for the first epoch.
struct ReleaseTraining {};
// Send RunMonitor::membership() to all of its members.
struct BeginMembershipEpoch {};
// Show this line to the user; the run goes on.
struct ReportLine {
  std::string text;
};

using MonitorAction = std::variant<StopAll, KillProcess, RestartProcess, DropWorker, AddWorker, ReleaseTraining,
                                   BeginMembershipEpoch, ReportLine>;

}  // namespace syncopate::experiments
