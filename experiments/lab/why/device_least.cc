#include "experiments/lab/why/device_least.h"

#include "experiments/lab/run/step_work.h"

namespace syncopate::experiments {

std::optional<DeviceLeast> least_on(const prediction::DeviceRates& device, const ResolvedRun& config) {
  if (has_own_data(config)) return std::nullopt;
  DeviceLeast least{.device = device, .precision = name_of(config.precision)};
  const std::optional<double> rate = device.flops_in(least.precision);
  const Result<StepWork> work = step_work(config);
  if (!rate || !work.ok()) return std::nullopt;
  const prediction::PeakRates peak{.flops_per_second = *rate, .bytes_per_second = device.bytes_per_second};
  least.forward = least_time(work->forward, peak);
  least.backward = least_time(work->backward, peak);
  least.update = least_time({&work->update, 1}, peak);
  return least;
}

}  // namespace syncopate::experiments
