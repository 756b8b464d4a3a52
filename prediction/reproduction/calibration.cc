#include <cassert>
#include <cmath>

#include "prediction/reproduction/tables.h"

namespace syncopate::prediction {

ModelProfile profile_named(const std::string& name) {
  Result<ModelProfile> profile = built_in_profile(name);
  assert(profile.ok());
  return std::move(*profile);
}

double step_seconds(const ModelProfile& profile, double compute, const Network& network, const ExchangePlan& plan) {
  const Result<StepPrediction> prediction = predict_step(profile, compute, network, plan);
  assert(prediction.ok());
  return prediction->step;
}

double solve_falling(const std::function<double(double)>& falling, double low, double high, double target) {
  constexpr int kHalvings = 100;  // of the logarithm: more than a double can tell apart
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::sqrt(low * high);
    (falling(middle) > target ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

double solve_link(const std::function<double(double)>& step_of, double seconds) {
  return solve_falling(step_of, 1e6, 1e13, seconds);
}

}  // namespace syncopate::prediction
