// RoundsEnd: after how many rounds --repeat=auto has had enough, and why.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "common/clock.h"
#include "experiments/config/comparison.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

class RoundsEnd {
 public:
  // The time of --repeat-limit counts from `begin`. `clock` is kept by reference.
  RoundsEnd(const AutoRounds& rounds, const Clock& clock, TimePoint begin);

  // When the time is over; none: it has no end.
  std::optional<TimePoint> deadline() const { return deadline_; }
  // Returns what is said before the first round.
  std::string announcement() const;

  // Returns the number of rounds that are sure to be made before it is asked again whether they are enough, once
  // `rounds` have been: more than those. `is_certain`: one round says all (ComparisonReport).
  static std::size_t surely(std::size_t rounds, bool is_certain);

  // Told after each round, `rounds` of which have ended: returns whether they are enough. `report` has their figures.
  bool is_enough(const ComparisonReport& report, std::size_t rounds);

  // Returns why there are no more than these, in words: "--repeat=auto: 8 rounds: ...".
  std::string reason(std::size_t rounds) const;

 private:
  const AutoRounds asked_;
  const Clock& clock_;
  const TimePoint begin_;
  const std::optional<TimePoint> deadline_;
  TimePoint round_begin_;
  Duration longest_{};  // of the rounds so far
  std::string why_;     // empty: not enough
};

}  // namespace syncopate::experiments
