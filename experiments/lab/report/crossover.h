// Crossovers: where, over the values of a varied option, one mode stops being the faster of two and the other begins
// to be. Pure.
//
// A mode is ahead at a value where rounds claim that it is the faster; where they judge nothing, where it is kAhead
// times as fast. A crossover lies between two values at which each of the modes is ahead, with none of either between
// them, so that a crossing within the noise is none. It is where the ratio of their samples/s is 1 if the ratio's
// logarithm is a straight line, from value to value, over the logarithm of the option.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/report/comparison_report.h"
#include "experiments/lab/report/paired_comparison.h"

namespace syncopate::experiments {

inline constexpr double kAhead = 1.01;

struct Crossover {
  std::string option;        // "workers"
  std::string others;        // the other varied options of both: "servers=2"; empty: none
  std::string below, above;  // the mode that is faster below, and the one above
  double at = 0;             // value of the option
  Interval between;          // values of the option
  bool is_judged = false;    // by rounds
};

// Returns the crossovers of each two modes over each varied option with numbers as values, by option and by mode as the
// rows stand.
std::vector<Crossover> crossovers_of(const ComparisonReport& report);

}  // namespace syncopate::experiments
