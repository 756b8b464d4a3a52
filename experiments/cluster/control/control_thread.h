// ControlThread: a process's control thread. It passes messages of the coordinator to the threads that wait for them,
// sends heartbeats and records on time, and compares clocks if that is asked for. It also watches: it stops the
// process's work when the coordinator has fallen silent, and ends the process when that work makes no progress.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <zmq.hpp>

#include "common/activity.h"
#include "common/clock.h"
#include "common/transport/link_faults.h"
#include "experiments/cluster/control/attention.h"
#include "experiments/cluster/control/clock_offset.h"
#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/control_channel.h"
#include "experiments/cluster/control/control_line.h"
#include "experiments/cluster/control/coordinator_watch.h"
#include "experiments/cluster/control/progress_watch.h"
#include "experiments/cluster/control/records_interval.h"

namespace syncopate::experiments {

// Returns a tenth of the timeout, so that silence can be told from a late message, and at most a second. With a
// `stall_warning` above zero it returns at most a fifth of that, so that a stall is not found much later.
inline Duration heartbeat_interval(Duration timeout, Duration stall_warning = {}) {
  const Duration interval = std::min<Duration>(std::chrono::seconds(1), timeout / 10);
  return stall_warning > Duration::zero() ? std::min(interval, stall_warning / 5) : interval;
}

class ControlThread {
 public:
  // Makes the line to the coordinator, says hello as a process of run `run_id`, and starts the line's thread, one of
  // `threads`. What the others refer to outlives this. Throws what `make_line` throws.
  ControlThread(const LineMaker& make_line, const std::string& run_id, Threads& threads, Activity& activity,
                ControlChannel& channel, Patience& patience, LinkFaults& link_faults);

  // From now on this timeout limits the silence of the coordinator and of this process's own work. Both arguments
  // determine how often heartbeats are sent. Any thread.
  void set_timeout(Duration timeout, Duration stall_warning);

 private:
  TimePoint tick(TimePoint now);
  void spread_out(const control::Welcome& welcome);
  void beat();
  void ask_time();
  void take_time(const control::ClockAnswer& answer);
  void impair_links(const control::ImpairLinks& order);
  void handle(control::FromCoordinator& message, const zmq::message_t& weights);
  void check_coordinator(Duration timeout, TimePoint now);
  void check_own_progress(Duration timeout, TimePoint now);

  Activity& activity_;
  ControlChannel& channel_;
  Patience& patience_;
  LinkFaults& link_faults_;
  const Clock& clock_;

  // The following belong to the control thread.
  std::optional<TimePoint> last_beat_;
  Duration records_every_ = records_interval(1);
  TimePoint next_records_ = clock_.now();
  bool compares_clocks_ = false;
  ClockOffset offset_;  // offset of the coordinator's clock
  std::size_t clock_answers_ = 0;
  Attention attention_{clock_.now()};
  CoordinatorWatch coordinator_{clock_.now()};
  bool coordinator_is_away_ = false;
  ProgressWatch progress_;

  std::unique_ptr<ControlLine> line_;  // last: its thread uses all of the above, and ends first
};

}  // namespace syncopate::experiments
