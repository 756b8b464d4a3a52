#include "experiments/lab/report/alike_rounds.h"

#include <algorithm>
#include <cmath>

#include "experiments/lab/report/statistics.h"

namespace syncopate::experiments {
namespace {

constexpr double kStep = 0.05;
constexpr int kAutocorrelations = 20;

// Returns the variance of the mean of values whose correlation falls by `alike` with each step, where each has a
// variance of 1 (Bayley and Hammersley 1946, The "effective" number of independent observations in an autocorrelated
// time series).
double variance_of_mean(double alike, std::size_t values) {
  const auto count = static_cast<double>(values);
  double inflation = 1, power = 1;
  for (std::size_t lag = 1; lag < values; ++lag) {
    power *= alike;
    inflation += 2 * (1 - static_cast<double>(lag) / count) * power;
  }
  return inflation / count;
}

// An autoregression of first order, fitted to values.
struct Fit {
  double variance = 0;        // of a value
  double log_likelihood = 0;  // with mean and variance integrated over
};

Fit fit(std::span<const double> values, double alike) {
  const auto count = static_cast<double>(values.size());
  // The inverse of the correlation matrix, applied to ones: 1 / (1 + alike) at the ends, and less within.
  const double end = 1 / (1 + alike), within = (1 - alike) / (1 + alike);
  const double sum = 2 * end + (count - 2) * within;
  double center = end * (values.front() + values.back());
  for (const double value : values.subspan(1, values.size() - 2)) center += within * value;
  center /= sum;
  double squares = (values[0] - center) * (values[0] - center);
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double innovation = values[i] - center - alike * (values[i - 1] - center);
    squares += innovation * innovation / (1 - alike * alike);
  }
  return {squares / (count - 1),
          -((count - 1) * (std::log(1 - alike * alike) + std::log(squares)) + std::log(sum)) / 2};
}

}  // namespace

ErrorOfMean::ErrorOfMean(std::span<const double> values, Rounds rounds, double inflation, int freedom)
    : freedom_(freedom) {
  const bool differ = std::ranges::adjacent_find(values, std::ranges::not_equal_to()) != values.end();
  if (!differ) return;  // no error
  const int autocorrelations = rounds == Rounds::kIndependent ? 1 : kAutocorrelations;
  for (int i = 0; i < autocorrelations; ++i) {
    const Fit fitted = fit(values, kStep * i);
    const double error = std::sqrt(inflation * fitted.variance * variance_of_mean(kStep * i, values.size()));
    parts_.push_back({.log_likelihood = fitted.log_likelihood, .error = error});
    log_likelihoods_.push_back(fitted.log_likelihood);
  }
  weigh();
}

void ErrorOfMean::weigh() {
  const auto most = std::ranges::max_element(log_likelihoods_);
  autocorrelation_ = kStep * static_cast<double>(most - log_likelihoods_.begin());
  double sum = 0;
  for (const double likelihood : log_likelihoods_) sum += std::exp(likelihood - *most);
  for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].weight = std::exp(log_likelihoods_[i] - *most) / sum;
}

void ErrorOfMean::learn_from(const ErrorOfMean& other, double part) {
  if (other.parts_.size() != parts_.size() || parts_.empty()) return;  // values that do not differ say nothing
  for (std::size_t i = 0; i < parts_.size(); ++i) log_likelihoods_[i] += part * other.parts_[i].log_likelihood;
  weigh();
}

double ErrorOfMean::p(double distance) const {
  if (parts_.empty()) return distance == 0 ? 1 : 0;
  double p = 0;
  for (const Part& part : parts_) p += part.weight * two_sided_p(distance / part.error, freedom_);
  return p;
}

double ErrorOfMean::reach(double probability) const {
  if (parts_.empty()) return 0;
  double low = 0, high = parts_.back().error;
  while (p(high) > probability) high *= 2;
  for (int halving = 0; halving < 40; ++halving) {
    const double middle = low + (high - low) / 2;
    (p(middle) > probability ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

}  // namespace syncopate::experiments
