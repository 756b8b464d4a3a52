// ProcessEnds: tells RunMonitor of processes that have ended, after their last messages have been heard, and ends what
// carried them (mpirun) once they have all ended.
//
// Used by the coordinator's thread.
#pragma once

#include <functional>
#include <optional>

#include "common/clock.h"
#include "experiments/cluster/coordinator/cluster_runtime.h"
#include "experiments/cluster/coordinator/run_monitor.h"

namespace syncopate::experiments {

class ProcessEnds {
 public:
  struct Patience {
    // How long the last messages of a process may take to arrive after it has ended.
    Duration last_words{};
    // The same for one that ended well and has not said so yet: its message may follow gigabytes of weights.
    Duration finished{};
  };

  // `receive_all` handles all messages that have arrived. All references outlive this.
  ProcessEnds(ClusterRuntime& runtime, RunMonitor& monitor, Patience patience, std::function<void()> receive_all);

  // Takes all ends that the runtime has noticed.
  void take();
  // Call it about every 100 ms.
  void end_carriers(TimePoint now);
  // The coordinator has not looked for so long: nobody is blamed for that time.
  void forgive(Duration absence);

 private:
  void on_end(const EndedChild& ended);
  void hear_last_words(std::size_t process, Duration patience);

  ClusterRuntime& runtime_;
  RunMonitor& monitor_;
  const Clock& clock_;
  const Patience patience_;
  const std::function<void()> receive_all_;
  std::optional<TimePoint> all_ended_;
};

}  // namespace syncopate::experiments
