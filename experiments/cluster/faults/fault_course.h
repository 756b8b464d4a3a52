// FaultCourse: which of a run's faults are due. Pure: it is told of steps, of time and of who is there, and says what
// is to be done now.
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
    kContinue,   // what was stopped
    kHurtLinks,  // for `length`
  };
  Kind kind = Kind::kKill;
  FaultTarget target;
  LinkFault link_fault = LinkFault::kCut;  // of kHurtLinks
  Duration length{};                       // of all but a kill
  std::string fault;                       // as it was asked for: "kill:worker1@step200", "churn:4s"
  std::optional<std::int64_t> step = {};   // that it was due at; none: it was due at a time
};

class FaultCourse {
 public:
  // `seed`: of whom churn strikes, and when.
  FaultCourse(DrawnFaults faults, std::uint64_t seed);

  // Which steps a worker is to announce before it begins them: ascending, each once.
  std::vector<std::int64_t> announced_steps(int worker) const;

  void on_training_begins(TimePoint now);
  // Worker `worker` is about to begin `step`.
  void on_step_begins(int worker, std::int64_t step);

  // What has become due, in order, each once. `workers` are those that train: churn takes one of them, but never
  // the last, without whom there is no run.
  std::vector<FaultAction> take_due(TimePoint now, std::span<const int> workers);
  // When something will be due by itself; never: the end of time.
  TimePoint next() const;

  // The run is over, or is to end: nothing is due any more but to continue what is stopped.
  std::vector<FaultAction> end();
  // Faults whose step or time has not come.
  std::vector<Fault> not_come() const;
  // Churns that have struck nobody: the mean time between two losses of each.
  std::vector<Duration> churns_in_vain() const;

 private:
  struct Due {
    Fault fault;
    bool reached = false;  // its step
    bool done = false;
  };
  struct Churn {
    Duration mean{};
    TimePoint next = TimePoint::max();
    bool has_struck = false;
  };
  struct Stopped {
    TimePoint until{};
    FaultAction action;  // that continues it
  };

  bool is_due(const Due& due, TimePoint now) const;
  void act(const Due& due, TimePoint now, std::vector<FaultAction>& actions);
  void strike(Churn& churn, std::span<const int> workers, std::vector<FaultAction>& actions);
  Duration drawn_pause(const Churn& churn);

  Random random_;
  std::vector<Due> faults_;
  std::vector<Churn> churns_;
  std::vector<Stopped> stopped_;
  TimePoint begun_ = TimePoint::max();  // training
};

}  // namespace syncopate::experiments
