// HealthReporter: tells the coordinator what a worker has found that is not a finite number. One thread.
#pragma once

#include <optional>

#include "common/pause.h"
#include "common/status.h"
#include "experiments/cluster/process/roles.h"
#include "worker/health_check.h"

namespace syncopate::experiments {

class HealthReporter {
 public:
  // `context` must outlive this object.
  explicit HealthReporter(const RoleContext& context) : context_(context) {}

  // Returns what a worker of this run looks at; none: nothing, since its model computes nothing.
  std::optional<worker::HealthOptions> options() const;

  // Reports it: the first, and each step that is left out, which is counted. If the run ends by it, waits for that,
  // with the gradient in the worker's hands, and fails with cancelled. `pause` is interrupted once the run ends.
  Status report(const worker::NotFinite& what, Pause& pause);

 private:
  const RoleContext& context_;
  bool has_reported_ = false;
};

}  // namespace syncopate::experiments
