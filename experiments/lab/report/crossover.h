// Crossovers: where, over the values of a varied option, one mode stops being the faster of two and the other begins
// to be. Pure.
//
// A mode is ahead at a value where rounds claim that it is the faster; where they judge nothing, where it is kAhead
// times as fast. A crossover lies between two values at which each of the modes is ahead, with none of either between
// them, so that a crossing within the noise is none. It is where the ratio of their samples/s is 1 if the ratio's
// logarithm is a straight line, from value to value, over the logarithm of the option.
#pragma once

#include <optional>
#include <span>
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

// The ratio of two figures at one value of an option.
struct RatioAtValue {
  double value = 0;
  double ratio = 0;
};

// Returns where the ratio is 1, on the line of its logarithm over that of the option: the first place between two
// values on different sides of it, or the last value if there is none. `ratios` are by value, above 0, and at least
// two.
double crossing(std::span<const RatioAtValue> ratios);

// Returns the crossovers of each two modes over each varied option with numbers as values, by option and by mode as the
// rows stand.
std::vector<Crossover> crossovers_of(const ComparisonReport& report);

}  // namespace syncopate::experiments
