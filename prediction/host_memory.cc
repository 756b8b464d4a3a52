#include "prediction/host_memory.h"

#include <algorithm>

#include "prediction/server_load.h"

namespace syncopate::prediction {

double worker_host_bytes(const ModelProfile& profile, const Network& network, const ExchangePlan& plan,
                         int state_floats) {
  const double workers = std::min(network.workers_per_host, network.workers);
  const double weights_and_gradients = 2 * profile.bytes();
  if (plan.exchange != Exchange::kServers) {
    const auto held = [&](int sharded_from) {
      return profile.bytes() * (plan.stage >= sharded_from ? 1.0 / network.workers : 1.0);
    };
    double largest = 0;
    for (const TensorProfile& tensor : profile.tensors) {
      largest = std::max(largest, sizeof(float) * static_cast<double>(tensor.parameters));
    }
    // A tensor's gradient is made as a whole, and at stage 3 its weights are gathered for it.
    const double others = largest * (1 - 1.0 / network.workers),
                 whole = (plan.stage >= 2 ? others : 0) + (plan.stage >= 3 ? others : 0);
    return workers * (state_floats * held(1) + held(2) + held(3) + whole);
  }
  const std::vector<double> on_servers = bytes_on_servers(profile, plan);
  const double served = plan.colocated ? *std::max_element(on_servers.begin(), on_servers.begin() + plan.servers) : 0;
  return workers * weights_and_gradients + (2 + state_floats) * served;
}

double stage_host_bytes(double own_bytes, double borrowed_bytes, int microbatches, int state_floats) {
  const int of_microbatch = microbatches > 1 ? 1 : 0;
  return (2 + of_microbatch + state_floats) * own_bytes + 2 * borrowed_bytes;
}

}  // namespace syncopate::prediction
