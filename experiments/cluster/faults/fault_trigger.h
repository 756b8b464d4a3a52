// FaultTrigger: decides which of a run's faults are due. Pure: it receives steps, times and the workers that are there,
// and returns the actions that are due now.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/random.h"
#include "experiments/config/fault_schedule.h"

namespace syncopate::experiments {

struct FaultAction {
  enum class Kind {
    kKill,
    kStop,
    kContinue,     // continue a stopped process
    kImpairLinks,  // for `length`
    kPlantNan,     // in the gradient of the step that the worker is about to begin
  };
  Kind kind = Kind::kKill;
  FaultTarget target;
  LinkFault link_fault = LinkFault::kCut;  // kImpairLinks only
  Duration length{};                       // of a kind that lasts
  std::string fault;                       // as it was asked for: "kill:worker1@step200", "churn:4s"
  std::optional<std::int64_t> step = {};   // the step at which it was due; none: it was due at a time
};

class FaultTrigger {
 public:
  // `seed` determines which workers churn kills, and when.
  FaultTrigger(DrawnFaults faults, std::uint64_t seed);

  // Returns the steps that a worker must announce before it begins them: ascending, each once.
  std::vector<std::int64_t> announced_steps(int worker) const;

  void on_training_begins(TimePoint now);
  // Worker `worker` is about to begin `step`.
  void on_step_begins(int worker, std::int64_t step);

  // Returns the actions that have become due, in order, each once. `workers` are those that train. Churn kills one of
  // them, but never the last, without which there is no run.
  std::vector<FaultAction> take_due(TimePoint now, std::span<const int> workers);
  // Returns when the next fault will be due by time; the end of time if none will.
  TimePoint next() const;

  // The run is over, or is about to end. Returns the actions that continue stopped processes; nothing else is due any
  // more.
  std::vector<FaultAction> end();
  // Returns the faults whose step or time was not reached.
  std::vector<Fault> not_come() const;
  // Returns the churns that have killed no worker: the mean time between two losses of each.
  std::vector<Duration> churns_in_vain() const;

 private:
  struct Due {
    Fault fault;
    bool reached = false;  // its step was reached
    bool done = false;
  };
  struct Churn {
    Duration mean{};
    TimePoint next = TimePoint::max();
    bool has_struck = false;
  };
  struct Stopped {
    TimePoint until{};
    FaultAction action;  // the action that continues it
  };

  bool is_due(const Due& due, TimePoint now) const;
  void act(const Due& due, TimePoint now, std::vector<FaultAction>& actions);
  void strike(Churn& churn, std::span<const int> workers, std::vector<FaultAction>& actions);
  Duration drawn_pause(const Churn& churn);

  Random random_;
  std::vector<Due> faults_;
  std::vector<Churn> churns_;
  std::vector<Stopped> stopped_;
  TimePoint begun_ = TimePoint::max();  // when training began
};

}  // namespace syncopate::experiments
