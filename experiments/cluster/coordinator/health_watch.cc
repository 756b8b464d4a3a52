#include "experiments/cluster/coordinator/health_watch.h"

#include <fmt/format.h>

namespace syncopate::experiments {
namespace {

constexpr Duration kOthersReport = std::chrono::milliseconds(300);
constexpr const char* kEvaluator = "evaluator";

std::string consequence(OnNan on_nan, bool ends_run) {
  switch (on_nan) {
    case OnNan::kStop:
      return "--on-nan=stop ends the run";
    case OnNan::kSkip:
      return ends_run ? "no step that --on-nan=skip leaves out mends that: the run ends"
                      : "the step is left out (--on-nan=skip), as others will be that are like it";
    case OnNan::kGoOn:
      return "training goes on with it (--on-nan=go-on)";
  }
  return {};
}

}  // namespace

std::string to_text(const HealthRecord& record) {
  const std::string what = worker::to_text(record.first);
  if (record.process != kEvaluator) return fmt::format("step {}: on {} {}", record.first.step, record.process, what);
  return fmt::format("after {} steps, or before: {}, as they are evaluated", record.first.step, what);
}

void HealthWatch::on_report(const std::string& process, const worker::NotFinite& what, TimePoint now) {
  if (!first_) due_ = now + kOthersReport;
  if (!first_ || (!is_told_ && what.step < first_->first.step)) {
    first_ = HealthRecord{.process = process, .first = what, .on_nan = on_nan_};
  }
  const bool ends = worker::ends_run(on_nan_, what.quantity);
  if (ends && !is_ending_) {
    is_ending_ = true;
    if (is_told_) first_ = HealthRecord{.process = process, .first = what, .on_nan = on_nan_};
    is_told_ = false;
  }
  if (on_nan_ == OnNan::kSkip && !ends && process != kEvaluator) {
    left_out_.emplace(what.step, together_ ? std::string() : process);
  }
}

std::optional<HealthWatch::Finding> HealthWatch::take_due(TimePoint now, bool is_end) {
  if (!first_ || is_told_ || (now < due_ && !is_end)) return std::nullopt;
  is_told_ = true;
  return Finding{.step = first_->first.step,
                 .line = fmt::format("{}; {}", to_text(*first_), consequence(on_nan_, is_ending_)),
                 .ends_run = is_ending_};
}

std::optional<HealthRecord> HealthWatch::record() const {
  if (!first_) return std::nullopt;
  HealthRecord record = *first_;
  record.left_out = static_cast<std::int64_t>(left_out_.size());
  return record;
}

}  // namespace syncopate::experiments
