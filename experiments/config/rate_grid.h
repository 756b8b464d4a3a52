// RateGrid: the learning rates of --tune-rate. A comparison tries them for each row, then measures with the best. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

struct RateGrid {
  std::vector<double> values;  // ascending, at least two
  // whether values multiply the row's own rate; else they are rates for updates of the comparison's reference
  bool factors = false;
};

// Reads "0.01,0.03,0.1" or "x0.25,x1,x4", in any order. Fails with invalid argument, saying what would be right.
Result<RateGrid> parse_rate_grid(std::string_view text);

// Returns the rates that the grid asks for, ascending, for a row whose own rate is `base_rate`. They are rates for
// updates of the reference; set_rate converts them to the row's.
std::vector<double> rates_to_try(const RateGrid& grid, double base_rate);

}  // namespace syncopate::experiments
