#include "experiments/config/evaluation_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace syncopate::experiments {
namespace {

// Sums of fractions of an epoch are whole steps, except for rounding.
constexpr double kRounding = 1e-6;

// Divides an epoch into as few equal parts as make enough points of the whole job, the one at its end included.
double part_for_a_target(const JobLength& job) {
  const double epochs = static_cast<double>(job.total_steps) / static_cast<double>(job.steps_per_epoch);
  const double parts = static_cast<double>(EvaluationPoints::kLeastForATarget) / epochs;
  return 1 / std::max(1.0, std::ceil(parts - kRounding));
}

}  // namespace

EvaluationPoints::EvaluationPoints(const std::optional<EvaluationInterval>& asked, bool has_target,
                                   const JobLength& job)
    : job_(job), interval_(asked.value_or(EvaluationInterval{.epochs = has_target ? part_for_a_target(job) : 1})) {
  if (interval_.seconds > 0) return;
  const double steps = interval_.steps > 0 ? static_cast<double>(interval_.steps)
                                           : interval_.epochs * static_cast<double>(job.steps_per_epoch);
  stride_ = std::max(1.0, steps);
}

std::int64_t EvaluationPoints::passed(double steps, Duration elapsed) const {
  if (steps >= static_cast<double>(job_.total_steps)) {
    if (stride_ > 0) return *all();
  } else if (stride_ > 0) {
    return static_cast<std::int64_t>(std::floor(steps / stride_ + kRounding));
  }
  return static_cast<std::int64_t>(std::floor(seconds(elapsed) / interval_.seconds));
}

std::optional<std::int64_t> EvaluationPoints::all() const {
  if (stride_ == 0) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(job_.total_steps) / stride_ - kRounding)) - 1;
}

std::string EvaluationPoints::to_text() const {
  if (interval_.seconds > 0) return fmt::format("every {:g} s", interval_.seconds);
  if (interval_.steps > 0) return interval_.steps == 1 ? "every step" : fmt::format("every {} steps", interval_.steps);
  if (interval_.epochs == 1) return "every epoch";
  return fmt::format("every {:.4g} epochs ({:.4g} steps)", interval_.epochs, stride_);
}

}  // namespace syncopate::experiments
