// StallInspector: which workers stand in a collective operation that others have not come to. Pure: it is told what
// workers' heartbeats say and when, and says what a person is to know.
//
// All ranks carry out the same operations in the same order, so that they can be counted: who has begun fewer than
// somebody who waits is who that one waits for.
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
    Duration heartbeat{};  // how often each worker is heard
  };

  StallInspector(int workers, const Options& options);

  // Worker `rank` does `operation` of step `step`. Without a report it is in no collective operation (any more).
  void on_heartbeat(int rank, const std::string& operation, std::int64_t step,
                    const std::optional<CollectiveReport>& report, TimePoint now);

  // Worker `rank` is lost, or comes back: nothing is known of it.
  void forget(int rank) { workers_[static_cast<std::size_t>(rank)] = {.is_there = false}; }

  // Until `now` nobody has listened: who has waited meanwhile may have waited for that.
  void forgive(TimePoint now) { not_before_ = std::max(not_before_, now); }

  // To be shown: a stall, once it lasts for the warning, and its end, once each.
  std::vector<std::string> take_lines(TimePoint now);

  // The stall there is, if one has lasted for `at_least`:
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
    std::int64_t number = 0;  // the operation's
    std::string what;
    TimePoint since{};
  };

  // It is in an operation and was heard lately: one that has stopped since is not known to wait.
  bool waits(const Worker& worker, TimePoint now) const;
  std::optional<Stall> find(Duration at_least, TimePoint now) const;
  std::string describe(const Stall& stall, TimePoint now) const;
  bool has_gone_on(const Stall& stall, TimePoint now) const;

  const Options options_;
  std::vector<Worker> workers_;  // by rank
  std::optional<Stall> shown_;
  TimePoint not_before_ = TimePoint::min();  // what is waited for since earlier belongs to a stall that has ended
};

}  // namespace syncopate::experiments
