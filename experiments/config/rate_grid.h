// The grid of --tune-rate: the learning rates that a comparison tries for each row before it measures with the best.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

struct RateGrid {
  std::vector<double> values;  // ascending, two or more
  bool factors = false;        // of the row's own rate; else rates for updates of the comparison's reference
};

// Of "0.01,0.03,0.1" or "x0.25,x1,x4", in any order. Fails with invalid argument, saying what would be right.
Result<RateGrid> parse_rate_grid(std::string_view text);

// The rates for updates of the reference, ascending, that the grid asks for where `base_rate` is the row's: set_rate
// makes the row's own of them.
std::vector<double> rates_to_try(const RateGrid& grid, double base_rate);

}  // namespace syncopate::experiments
