// The ring and BytePS's forms: no measurement, but the published formula beside what links carry when it is counted.
#include <fmt/format.h>

#include <algorithm>

#include "prediction/reproduction/tables.h"

namespace syncopate::prediction {
namespace {

constexpr double kBytes = 1e9;
constexpr double kLink = 1e9;  // bytes a second
constexpr double kExactBar = 0.005;

ModelProfile one_tensor() {
  ModelProfile profile{.model = "one tensor"};
  constexpr auto kFloats = static_cast<std::int64_t>(kBytes / 4);
  profile.tensors.push_back({.name = "all", .shape = {kFloats}, .parameters = kFloats, .forward_flops = 1});
  return profile;
}

// What a step's exchange takes by itself.
double exchange_of(int workers, const ExchangePlan& plan, double alpha = 0) {
  const Network network{.alpha = alpha, .bytes_per_second = kLink, .workers = workers};
  return step_seconds(one_tensor(), 1, network, plan) - 1;
}

// Walks a ring: in each of 2(p-1) rounds every rank sends one part on, and all wait for the largest.
double walked_ring(int ranks, double alpha) {
  double seconds = 0;
  for (int round = 0; round < 2 * (ranks - 1); ++round) seconds += alpha + kBytes / ranks / kLink;
  return seconds;
}

// The busiest link when all push and pull what byteps_parts() says, full duplex.
double counted_byteps(int n, int k) {
  const BytepsParts parts = byteps_parts(n, k);
  const double on_workers = (1 - parts.on_worker_host) + (n - 1) * parts.on_worker_host;
  const double on_servers = k > 0 ? n * parts.on_server_host : 0;
  return std::max(on_workers, on_servers) * kBytes / kLink;
}

}  // namespace

Reproduction ring_form() {
  Reproduction ring{.what = "A ring allreduce of 1 GB over links of 1 GB/s, walked round by round",
                    .source = "nccl-tests, doc/PERFORMANCE.md; Goyal et al. 2017, section 4.1",
                    .unit = "s",
                    .reference = "counted",
                    .model = "2(p-1) alpha + 2(p-1) S / (pB)",
                    .median_bar = kExactBar,
                    .worst_bar = kExactBar};
  for (const double alpha : {0.0, 1e-3}) {
    for (const int ranks : {2, 4, 8, 64}) {
      ring.cells.push_back({.setup = fmt::format("{} s a message", alpha),
                            .workers = ranks,
                            .measured = walked_ring(ranks, alpha),
                            .predicted = exchange_of(ranks, {.exchange = Exchange::kRing, .overlap = false}, alpha)});
    }
  }
  return ring;
}

Reproduction byteps_forms() {
  Reproduction forms{
      .what =
          "Push and pull of 1 GB over links of 1 GB/s: the published forms, and for the optimum the bytes that the "
          "busiest link carries",
      .source = "Jiang et al., OSDI 2020, as summarised by others; the optimum's limits follow from it",
      .unit = "s",
      .reference = "published or counted",
      .model = "predict_step without overlap; for the optimum 2n(n-1) M / ((n^2 + kn - 2k) B)",
      .median_bar = kExactBar,
      .worst_bar = kExactBar};
  const ExchangePlan even{.exchange = Exchange::kServers,
                          .overlap = false,
                          .sharding = Sharding::kEven,
                          .protocol = ServerProtocol::kPullThenPush};
  for (const int n : {2, 4, 16}) {
    ExchangePlan colocated = even;
    colocated.servers = n;
    colocated.colocated = true;
    forms.cells.push_back({"servers on all workers' hosts", n, 2.0 * (n - 1) / n, exchange_of(n, colocated)});
    for (const int k : {1, 2, 32}) {
      ExchangePlan separate = even;
      separate.servers = k;
      // max(M/B, nM/(kB)) each way, one after the other.
      const double form = 2 * std::max(1.0, static_cast<double>(n) / k);
      forms.cells.push_back({fmt::format("separate servers: {}", k), n, form, exchange_of(n, separate)});
    }
    for (const int k : {0, n / 2, n}) {
      const ExchangePlan plan{.exchange = Exchange::kByteps, .overlap = false, .servers = k};
      forms.cells.push_back({fmt::format("optimum, hosts more: {}", k), n, counted_byteps(n, k), exchange_of(n, plan)});
    }
  }
  return forms;
}

}  // namespace syncopate::prediction
