#include "experiments/lab/report/plot_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace syncopate::experiments {
namespace {

constexpr std::size_t kFewestTicks = 3;

// Returns `times` powers of ten, from the last value that is not above `low` to the first that is not below `high`.
std::vector<double> decades(double low, double high, std::initializer_list<int> times) {
  std::vector<double> all;
  for (int power = static_cast<int>(std::floor(std::log10(low))) - 1; std::pow(10, power) <= 10 * high; ++power) {
    for (const int factor : times) all.push_back(factor * std::pow(10, power));
  }
  const double slack = 1e-9;
  auto first = std::ranges::find_if(all, [&](double value) { return value > low * (1 + slack); });
  if (first != all.begin()) --first;
  auto last = std::ranges::find_if(all, [&](double value) { return value >= high * (1 - slack); });
  if (last != all.end()) ++last;
  return {first, last};
}

std::vector<double> multiples(double low, double high, double step) {
  std::vector<double> values;
  // Values are counted, so that rounding does not accumulate.
  const auto first = static_cast<std::int64_t>(std::floor(low / step + 1e-9)),
             last = static_cast<std::int64_t>(std::ceil(high / step - 1e-9));
  for (std::int64_t i = first; i <= last; ++i) values.push_back(static_cast<double>(i) * step);
  return values;
}

}  // namespace

std::vector<double> ticks(double low, double high, bool logarithmic, std::optional<double> most) {
  if (logarithmic) {
    std::vector<double> values = decades(low, high, {1});
    if (values.size() < kFewestTicks + 1) values = decades(low, high, {1, 2, 5});
    if (values.size() < kFewestTicks) values = decades(low / 2, high * 2, {1, 2, 5});
    return values;
  }
  const double rough = (high - low) / 5, power = std::pow(10, std::floor(std::log10(rough)));
  const double part = rough / power;  // 1 to 10
  double step = power * (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10);
  std::vector<double> values = multiples(low, high, step);
  if (values.size() < kFewestTicks) values = multiples(low, high, step / 2);
  while (most && values.size() > 1 && values.back() > *most + 1e-9 * step) values.pop_back();
  return values;
}

ChartScale::ChartScale(const ChartAxis& axis, const std::vector<double>& values) : logarithmic_(axis.logarithmic) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!shows(value)) continue;
    if (logarithmic_ && value == 0) {
      with_zero_ = true;
      continue;
    }
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (axis.most) low = std::min(low, *axis.most), high = std::min(high, *axis.most);
  if (low > high) low = logarithmic_ ? 1 : 0, high = logarithmic_ ? 10 : 1;  // nothing to show
  if (axis.from_zero && !logarithmic_) low = std::min(low, 0.0), high = std::max(high, 0.0);
  if (high - low <= 1e-9 * std::max(std::abs(low), std::abs(high))) {  // a single value, which is placed in the middle
    const double around = logarithmic_ ? 0 : low == 0 ? 0.5 : std::abs(low) * 0.1;
    low -= around;
    high = axis.most ? std::min(*axis.most, high + around) : high + around;
  }
  ticks_ = ticks(low, high, logarithmic_, axis.most);
  low_ = to(ticks_.front()), high_ = to(std::max(ticks_.back(), high));
  if (with_zero_) {
    low_ -= std::max(0.12 * (high_ - low_), 0.2);
    ticks_.insert(ticks_.begin(), 0);
  }
}

bool ChartScale::shows(double value) const { return std::isfinite(value) && (!logarithmic_ || value >= 0); }

double ChartScale::to(double value) const {
  if (!logarithmic_) return value;
  return value > 0 ? std::log10(value) : low_;
}

double ChartScale::fraction(double value) const {
  return high_ > low_ ? std::clamp((to(value) - low_) / (high_ - low_), 0.0, 1.0) : 0.5;
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e6) return fmt::format("{:.3g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.4g}k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

}  // namespace syncopate::experiments
