#include "experiments/cluster/process/health_reporter.h"

#include <utility>

#include "common/text/log.h"

namespace syncopate::experiments {

std::optional<worker::HealthOptions> HealthReporter::options() const {
  const ResolvedRun& config = context_.config;
  if (is_profile(config)) return std::nullopt;
  return worker::HealthOptions{.on_nan = config.on_nan, .reads_gradients = config.device == DeviceKind::kCpu};
}

Status HealthReporter::report(const worker::NotFinite& what, Pause& pause) {
  const OnNan on_nan = context_.config.on_nan;
  if (!std::exchange(has_reported_, true) || on_nan == OnNan::kSkip) {
    log_warning("step {}: {}", what.step, worker::to_text(what));
    context_.control.report_not_finite(what);
  }
  if (!worker::ends_run(on_nan, what.quantity)) return {};
  context_.activity.set("waiting for the end of the run", what.step);
  pause.wait(from_seconds(context_.config.timeout_seconds));
  return Status::cancelled("told to stop");
}

}  // namespace syncopate::experiments
