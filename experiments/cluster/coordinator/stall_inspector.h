// StallInspector: finds workers that wait in a collective operation for others that have not reached it. Pure: it
// receives workers' heartbeats with their times, and returns what a person should know.
//
// All ranks carry out the same operations in the same order, so that they can be counted: a worker that waits is
// waiting for those that have begun fewer operations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "experiments/cluster/control/collective_report.h"

namespace syncopate::experiments {

class StallInspector {
 public:
  struct Options {
    Duration warning{};    // a stall of this length is reported; zero: none is
    Duration heartbeat{};  // interval of each worker's heartbeats
  };

  StallInspector(int workers, const Options& options);

  // Worker `rank` is in `operation` of step `step`. Without a report it is in no collective operation (any more).
  void on_heartbeat(int rank, const std::string& operation, std::int64_t step,
                    const std::optional<CollectiveReport>& report, TimePoint now);

  // Worker `rank` is lost, or has joined again: nothing is known of it.
  void forget(int rank) { workers_[static_cast<std::size_t>(rank)] = {.is_there = false}; }

  // Nobody has listened until `now`: workers may have waited for that.
  void forgive(TimePoint now) { not_before_ = std::max(not_before_, now); }

  // Returns the lines to show: a stall, once it has lasted for the warning time, and its end, once each.
  std::vector<std::string> take_lines(TimePoint now);

  // Returns the current stall, if one has lasted for `at_least`:
  // "stalled for 5.3 s: step 17, bucket 3 of 9 (all_reduce, 1.05 MB): ranks 0, 1 and 3 wait; missing: rank 2 (forward
  // at step 17, last heard 0.4 s ago)"
  std::optional<std::string> stall(Duration at_least, TimePoint now) const;

 private:
  struct Worker {
    bool is_there = true;
    std::optional<TimePoint> heard;
    std::string operation;
    std::int64_t step = 0;
    CollectiveReport report;
  };
  struct Stall {
    std::int64_t number = 0;  // number of the operation
    std::string what;
    TimePoint since{};
  };

  // Returns whether it is in an operation and was heard lately; one that has stopped since may not be waiting.
  bool waits(const Worker& worker, TimePoint now) const;
  std::optional<Stall> find(Duration at_least, TimePoint now) const;
  std::string describe(const Stall& stall, TimePoint now) const;
  bool has_gone_on(const Stall& stall, TimePoint now) const;

  const Options options_;
  std::vector<Worker> workers_;  // by rank
  std::optional<Stall> shown_;
  TimePoint not_before_ = TimePoint::min();  // waits that began earlier belong to a stall that has ended
};

}  // namespace syncopate::experiments
