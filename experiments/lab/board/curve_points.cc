#include "experiments/lab/board/curve_points.h"

#include <algorithm>

namespace syncopate::experiments {
namespace {

constexpr std::int64_t kPointsOfARun = 1000;
constexpr Duration kLongestBetweenPoints = std::chrono::seconds(10);

}  // namespace

CurvePoints::CurvePoints(int workers, std::int64_t total_steps, std::int64_t first_step)
    : workers_(std::max(1, workers)),
      steps_a_point_((total_steps + kPointsOfARun - 1) / kPointsOfARun),
      last_{.step = first_step} {}

std::optional<CurvePoint> CurvePoints::add(const StepRecord& step) {
  const auto samples = static_cast<double>(step.samples);
  samples_ += samples;
  ++count_;
  sum_.step = std::max(sum_.step, step.position / workers_ + 1);
  sum_.at = std::max(sum_.at, step.end);
  sum_.loss += samples * step.loss;
  sum_.accuracy += samples * step.accuracy;
  sum_.step_ms += 1e3 * seconds(step.total);
  sum_.wait_ms += 1e3 * seconds(step.sync.exposed_wait);
  sum_.staleness += step.sync.staleness_mean;
  // As many steps as there are workers: else a point would be of the fastest alone.
  const bool is_far = sum_.step - last_.step >= steps_a_point_ && count_ >= workers_;
  if (!is_far && sum_.at - last_.at < kLongestBetweenPoints) return std::nullopt;
  return take();
}

std::optional<CurvePoint> CurvePoints::rest() { return count_ == 0 ? std::nullopt : std::optional(take()); }

CurvePoint CurvePoints::take() {
  const auto count = static_cast<double>(count_);
  CurvePoint point{.step = std::max(sum_.step, last_.step), .at = std::max(sum_.at, last_.at)};
  if (samples_ > 0) {
    point.loss = sum_.loss / samples_;
    point.accuracy = sum_.accuracy / samples_;
  }
  point.step_ms = sum_.step_ms / count;
  point.wait_ms = sum_.wait_ms / count;
  point.staleness = sum_.staleness / count;
  if (point.at > last_.at) point.samples_per_second = samples_ / seconds(point.at - last_.at);
  last_ = point;
  sum_ = {};
  samples_ = 0;
  count_ = 0;
  return point;
}

}  // namespace syncopate::experiments
