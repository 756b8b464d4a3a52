#include "prediction/advice/candidate.h"

#include <algorithm>
#include <set>

#include "prediction/asynchronous_prediction.h"
#include "prediction/server_load.h"

namespace syncopate::prediction {

const char* name_of(Family family) {
  if (family == Family::kAllreduce) return "allreduce";
  if (family == Family::kPipelines) return "pipelines";
  if (family == Family::kParts) return "parts of layers";
  return family == Family::kSharded ? "sharded" : "servers";
}

Family Way::family() const {
  if (pipeline.stages > 1) return Family::kPipelines;
  if (parts > 1) return Family::kParts;
  if (plan.exchange == Exchange::kServers) return Family::kServers;
  return plan.stage > 0 ? Family::kSharded : Family::kAllreduce;
}

bool Way::is_of_kind(const Way& other) const {
  return plan.exchange == other.plan.exchange && plan.colocated == other.plan.colocated &&
         plan.sharding == other.plan.sharding && plan.aggregated == other.plan.aggregated &&
         plan.stage == other.plan.stage && asynchronous == other.asynchronous &&
         pipeline.schedule == other.pipeline.schedule && (parts > 1) == (other.parts > 1);
}

std::vector<Way> ways_in(const SearchSpace& space, const Network& network) {
  const int hosts = network.hosts();
  std::vector<Exchange> exchanges = {Exchange::kRing, Exchange::kHalvingDoubling, Exchange::kTree};
  const bool shares_hosts = hosts > 1 && hosts < network.workers;
  if (shares_hosts) exchanges.push_back(Exchange::kHierarchical);
  std::vector<Way> ways;
  for (const Exchange exchange : exchanges) {
    for (const double bucket : space.bucket_bytes) {
      ways.push_back({.plan = {.exchange = exchange, .bucket_bytes = bucket}});
    }
  }
  for (int stage = 1; space.sharded && stage <= 3; ++stage) {
    for (const double bucket : space.bucket_bytes) {
      ways.push_back({.plan = {.bucket_bytes = bucket, .stage = stage, .ahead_bytes = space.buckets_ahead * bucket}});
    }
  }
  const auto add = [&](int servers, bool colocated) {
    for (const Sharding sharding : space.shardings) {
      if (servers == 1 && sharding != space.shardings.front()) continue;  // one server has all, either way
      Way way{
          .plan = {.exchange = Exchange::kServers, .servers = servers, .sharding = sharding, .colocated = colocated}};
      ways.push_back(way);
      if (space.asynchronous) ways.push_back({.plan = way.plan, .asynchronous = true});
      way.plan.aggregated = true;
      if (shares_hosts) ways.push_back(way);
    }
  };
  for (const int servers : space.servers) add(servers, false);
  if (!space.colocated) return ways;
  std::set<int> on_workers(space.servers.begin(), space.servers.end());
  on_workers.erase(on_workers.upper_bound(hosts), on_workers.end());
  on_workers.insert(hosts);
  for (const int servers : on_workers) add(servers, true);
  return ways;
}

Result<StepPrediction> predict_way(const AdvisedJob& job, const Network& network, const Way& way) {
  return way.asynchronous ? predict_asynchronous_step(job.profile, job.compute, network, way.plan)
                          : predict_step(job.profile, job.compute, network, way.plan);
}

double least_step(const AdvisedJob& job, const Network& network, const Way& way) {
  const double bytes = job.profile.bytes(), hosts = network.hosts();
  const double busiest = way.family() == Family::kServers ? busiest_link_bytes(job.profile, network, way.plan)
                                                          : 2 * (hosts - 1) / hosts * bytes;
  return std::max(job.compute, busiest / network.bytes_per_second);
}

double score(const AdvisedJob& job, const Network& network, const Way& way, double step) {
  const double seconds = step / network.workers;
  return job.goal == Goal::kFastest ? seconds : seconds * price_of_hour(job.prices, network, way.plan);
}

}  // namespace syncopate::prediction
