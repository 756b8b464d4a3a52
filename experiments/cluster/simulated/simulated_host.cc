#include "experiments/cluster/simulated/simulated_host.h"

#include <utility>

namespace syncopate::experiments {

Result<std::unique_ptr<worker::Model>> SimulatedHost::make_model(const ResolvedRun& config,
                                                                 const worker::SampleForm& form,
                                                                 worker::ComputeBackend& backend) {
  const auto sleep = [this](Duration duration) { world_.sleep_until(world_.now() + duration); };
  if (compute_.own) {
    std::unique_ptr<OwnTraining> own = compute_.own(rank_, threads_.clock(), sleep);
    own_ = own.get();
    return std::unique_ptr<worker::Model>(std::move(own));
  }
  std::unique_ptr<worker::Model> model;
  if (compute_.phantom) {
    model = make_phantom_model(*compute_.phantom, config.batch_size);
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(model, worker::make_model(model_spec(config), form, config.batch_size, backend));
  }
  return timed_model(std::move(model), compute_.times, sleep);
}

}  // namespace syncopate::experiments
