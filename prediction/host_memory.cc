#include "prediction/host_memory.h"

#include <algorithm>

#include "prediction/server_load.h"

namespace syncopate::prediction {

double worker_host_bytes(const ModelProfile& profile, const Network& network, const ExchangePlan& plan,
                         int state_floats) {
  const double workers = std::min(network.workers_per_host, network.workers);
  const double weights_and_gradients = 2 * profile.bytes();
  if (plan.exchange != Exchange::kServers) {
    const double gradients = profile.bytes() * (plan.stage > 1 ? 1.0 / network.workers : 1.0);
    const double state = state_floats * profile.bytes() * (plan.stage > 0 ? 1.0 / network.workers : 1.0);
    return workers * (profile.bytes() + gradients + state);
  }
  const double served = plan.colocated ? std::ranges::max(bytes_on_servers(profile, plan)) : 0;
  return workers * weights_and_gradients + (2 + state_floats) * served;
}

}  // namespace syncopate::prediction
