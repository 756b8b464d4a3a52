// The least that a GPU needs for a run's step, beside what its clock has measured. Pure.
#pragma once

#include <optional>
#include <string>

#include "common/status.h"
#include "experiments/config/resolved_run.h"
#include "prediction/device_rates.h"
#include "prediction/roofline.h"

namespace syncopate::experiments {

struct DeviceLeast {
  prediction::DeviceRates device;
  std::string precision;
  prediction::LeastTime forward, backward;
  prediction::LeastTime update;  // of all weights
};

// Returns the least times of the run's own work on the device; none if it cannot be counted, as that of data of the
// person's own, or the device has no rate in the run's precision.
std::optional<DeviceLeast> least_on(const prediction::DeviceRates& device, const ResolvedRun& config);

}  // namespace syncopate::experiments
