#include "experiments/lab/predict/predict_text.h"

#include <fmt/format.h>

#include "common/text/format.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

using prediction::Exchange;
using prediction::ExchangePlan;
using prediction::Network;

struct NamedPlan {
  std::string name;
  ExchangePlan plan;
};

std::vector<NamedPlan> plans_for(const PredictRequest& request, const Network& network) {
  const double bucket = request.bucket_bytes;
  const char* shards = request.sharding == prediction::Sharding::kEven ? "even shards" : "whole variables";
  return {
      {"ring allreduce", {.exchange = Exchange::kRing, .bucket_bytes = bucket}},
      {"tree allreduce", {.exchange = Exchange::kTree, .bucket_bytes = bucket}},
      {fmt::format("servers: {}, {}", request.servers, shards),
       {.exchange = Exchange::kServers, .servers = request.servers, .sharding = request.sharding}},
      {fmt::format("a server on each host, {}", shards),
       {.exchange = Exchange::kServers, .servers = network.hosts(), .sharding = request.sharding, .colocated = true}},
      {fmt::format("BytePS's optimum, hosts more: {}", request.servers),
       {.exchange = Exchange::kByteps, .bucket_bytes = bucket, .servers = request.servers}}};
}

std::string title(const PredictRequest& request) {
  return fmt::format(
      "{}: {} parameters in {} tensors, {}. Closed form, nothing is simulated or measured: {} s a step of {} samples "
      "alone, {:g} Gb/s and {:g} us a message, {} a host.\n\n",
      request.profile.model, format_count(static_cast<double>(request.profile.parameters())),
      request.profile.tensors.size(), format_bytes(request.profile.bytes()), request.step_seconds, request.batch_size,
      request.bytes_per_second * 8e-9, request.alpha * 1e6, request.workers_per_host);
}

}  // namespace

Result<std::string> predict_text(const PredictRequest& request) {
  std::vector<std::vector<std::string>> rows = {{"exchange", "workers", "ms/step", "samples/s", "efficiency", "waits"}};
  for (const int workers : request.workers) {
    const Network network{.alpha = request.alpha,
                          .bytes_per_second = request.bytes_per_second,
                          .workers = workers,
                          .workers_per_host = request.workers_per_host};
    for (const auto& [name, plan] : plans_for(request, network)) {
      SYNCOPATE_ASSIGN_OR_RETURN(const prediction::StepPrediction step,
                                 predict_step(request.profile, request.step_seconds, network, plan));
      rows.push_back({name, std::to_string(workers), format_ms(step.step * 1e3),
                      format_count(static_cast<double>(workers) * request.batch_size / step.step),
                      fmt::format("{:.1f} %", 100 * request.step_seconds / step.step),
                      fmt::format("{:.1f} %", 100 * step.exposed / step.step)});
    }
  }
  return title(request) + text_table(rows);
}

}  // namespace syncopate::experiments
