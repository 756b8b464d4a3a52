#include "experiments/config/rate_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "common/text/number.h"
#include "experiments/config/options/option_kinds.h"

namespace syncopate::experiments {
namespace {

constexpr double kMostRate = 1000;  // limit of --learning-rate
constexpr std::size_t kMostValues = 20;

Status wrong(std::string_view text) {
  return Status::invalid_argument(
      fmt::format("--tune-rate={}: must be 2 to {} different rates above 0 and up to {}, as in "
                  "0.01,0.03,0.1,0.3, or factors of each row's own rate, as in x0.25,x1,x4",
                  text, kMostValues, kMostRate));
}

}  // namespace

Result<RateGrid> parse_rate_grid(std::string_view text) {
  RateGrid grid;
  std::istringstream parts{std::string(text)};
  for (std::string part; std::getline(parts, part, ',');) {
    const bool is_factor = part.starts_with("x");
    if (!grid.values.empty() && is_factor != grid.factors) return wrong(text);
    grid.factors = is_factor;
    const std::optional<double> value = parse_number<double>(is_factor ? part.substr(1) : part);
    if (!value || !(*value > 0 && *value <= kMostRate)) return wrong(text);
    grid.values.push_back(*value);
  }
  std::ranges::sort(grid.values);
  const bool repeats = std::ranges::adjacent_find(grid.values) != grid.values.end();
  if (grid.values.size() < 2 || grid.values.size() > kMostValues || repeats) return wrong(text);
  return grid;
}

std::vector<double> rates_to_try(const RateGrid& grid, double base_rate) {
  std::vector<double> rates = grid.values;
  if (grid.factors) {
    for (double& rate : rates) rate = std::stod(fmt::format("{:.9g}", rate * base_rate));
  }
  return rates;
}

}  // namespace syncopate::experiments
