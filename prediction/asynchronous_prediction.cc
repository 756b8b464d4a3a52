#include "prediction/asynchronous_prediction.h"

#include <algorithm>

#include "prediction/server_load.h"
#include "prediction/timed_model.h"

namespace syncopate::prediction {
namespace {

// The part of each tensor that a worker's link carries.
double remote_part(const Network& network, const ExchangePlan& plan) {
  if (!plan.colocated) return 1;
  if (network.hosts() == 1) return 0;
  const bool has_its_share = plan.sharding == Sharding::kEven && plan.servers == network.hosts();
  return has_its_share ? 1 - even_part(network, plan) : 1;
}

// From the beginning of one backward pass to that of the next.
double step_with_links_to_itself(const TimedModel& model, const Network& network, const ExchangePlan& plan) {
  const double remote = remote_part(network, plan);
  const int parts = plan.sharding == Sharding::kEven ? plan.servers : 1;
  double now = 0, up_free = 0, down_free = 0;
  std::vector<double> arrived(model.bytes.size());
  for (std::size_t i = model.bytes.size(); i-- > 0;) {
    now += model.backward[i];
    arrived[i] = now;
    if (remote == 0) continue;
    const double part = remote * model.bytes[i] / parts / network.bytes_per_second;
    // All parts are alike: the first answer may begin once its part has arrived, and the last one not before its own.
    const double begun = std::max(up_free, now);
    up_free = begun + parts * part;
    down_free = std::max({down_free + parts * part, begun + part + network.alpha + parts * part});
    arrived[i] = down_free + network.alpha;
  }
  for (std::size_t i = 0; i < model.bytes.size(); ++i) now = std::max(now, arrived[i]) + model.forward[i];
  return now;
}

}  // namespace

Result<StepPrediction> predict_asynchronous_step(const ModelProfile& profile, double compute, const Network& network,
                                                 const ExchangePlan& plan) {
  if (plan.exchange != Exchange::kServers) {
    return Status::invalid_argument("an asynchronous exchange without servers: must be one of servers");
  }
  SYNCOPATE_RETURN_IF_ERROR(check_step(profile, compute, network, plan));
  const double link = busiest_link_bytes(profile, network, plan) / network.bytes_per_second;
  const double own = step_with_links_to_itself(timed_model(profile, compute), network, plan);
  const double step = std::max({own, link, compute});
  return StepPrediction{.step = step, .exposed = step - compute, .communication = link};
}

}  // namespace syncopate::prediction
