// FaultOutlook: what a run may come to by the faults of its schedule. Pure.
#pragma once

#include <optional>
#include <vector>

#include "common/clock.h"
#include "experiments/config/fault_schedule.h"
#include "tests/schedules/drawn_schedule.h"

namespace syncopate::experiments {

class FaultOutlook {
 public:
  explicit FaultOutlook(const DrawnSchedule& schedule);

  // Those with a target and a time; churn is not among them.
  const std::vector<Fault>& faults() const { return drawn_.faults; }

  // Returns whether the run goes on whatever its faults meet, by what FaultSchedule promises of random:SEED: nobody is
  // killed without whom there is no run, and stops and cuts, all together, are too short for a silence that counts.
  bool is_outlasted() const;
  // Returns how long processes of the run are stopped or cut off, all together; none where more than that makes it take
  // longer: a loss that is noticed by deadlines alone, messages that are held back, or an evaluator that it waits for.
  std::optional<Duration> longest_silence() const;

 private:
  Duration silence() const;
  bool spares_all_that_are_killed() const;

  FaultScene scene_;
  DrawnFaults drawn_;
};

}  // namespace syncopate::experiments
