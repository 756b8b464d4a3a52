#include "experiments/cluster/simulated/simulated_host.h"

#include <utility>

namespace syncopate::experiments {

Result<std::unique_ptr<worker::Model>> SimulatedHost::make_model(const ResolvedRun& config,
                                                                 const worker::SampleForm& form,
                                                                 worker::ComputeBackend& backend) {
  std::unique_ptr<worker::Model> model;
  if (compute_.phantom) {
    model = make_phantom_model(*compute_.phantom, config.batch_size);
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(model, worker::make_model(model_spec(config), form, config.batch_size, backend));
  }
  const auto sleep = [this](Duration duration) { world_.sleep_until(world_.now() + duration); };
  return timed_model(std::move(model), compute_.times, sleep);
}

std::unique_ptr<allreduce::Collective> SimulatedHost::shortened(
    const ResolvedRun& config, const std::string& group, std::unique_ptr<allreduce::ScheduleCollective> collective) {
  std::shared_ptr<PricedRing> ring = plane_.ring_of(config, compute_.processing.sum, group);
  if (ring == nullptr) return collective;
  return PricedRing::join(std::move(ring), std::move(collective));
}

}  // namespace syncopate::experiments
