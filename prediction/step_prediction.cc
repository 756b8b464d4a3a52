#include "prediction/step_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "prediction/server_load.h"
#include "prediction/timed_model.h"

namespace syncopate::prediction {

double exchange_seconds(double bytes, const Network& network, const ExchangePlan& plan) {
  if (plan.exchange == Exchange::kRing) return ring_seconds(bytes, network);
  if (plan.exchange == Exchange::kTree) return tree_seconds(bytes, network);
  if (plan.exchange == Exchange::kHalvingDoubling) return halving_doubling_seconds(bytes, network);
  if (plan.exchange == Exchange::kHierarchical) return hierarchical_seconds(bytes, network);
  return byteps_seconds(bytes, network, plan.servers);
}

namespace {

// Whether a bucket that has come to tensor i takes the one before it, too.
bool goes_on(std::span<const double> tensors, std::size_t i, double bucket, double limit) {
  return i > 0 && bucket + tensors[i - 1] <= limit;
}

// Buckets of gradients, one after another, behind or beside the backward pass. At stages 1 and 2 the wire is busy with
// new weights when forward begins, or else they follow behind all.
StepPrediction by_buckets(const TimedModel& model, double compute, const Network& network, const ExchangePlan& plan) {
  struct Bucket {
    double sum = 0, gather = 0;        // seconds on the wire
    double forward = 0, backward = 0;  // seconds of each pass
  };
  StepPrediction prediction;
  std::vector<Bucket> buckets;  // in the order of backward
  Bucket bucket;
  double bytes = 0;
  for (std::size_t i = model.bytes.size(); i-- > 0;) {
    bytes += model.bytes[i];
    bucket.forward += model.forward[i];
    bucket.backward += model.backward[i];
    if (goes_on(model.bytes, i, bytes, plan.bucket_bytes)) continue;
    const double seconds = exchange_seconds(std::exchange(bytes, 0), network, plan);
    prediction.communication += seconds;
    bucket.gather = plan.stage > 0 ? seconds / 2 : 0;
    bucket.sum = seconds - bucket.gather;
    buckets.push_back(std::exchange(bucket, {}));
  }
  double now = 0, wire_free = 0, gathered = 0;
  for (std::size_t i = buckets.size(); i-- > 0;) {
    gathered += buckets[i].gather;
    if (plan.overlap) now = std::max(now, gathered);
    now += buckets[i].forward;
  }
  wire_free = plan.overlap ? gathered : compute;
  for (const Bucket& each : buckets) {
    now += each.backward;
    wire_free = std::max(wire_free, now) + each.sum;
  }
  prediction.step = std::max(now, wire_free) + (plan.overlap ? 0 : gathered);
  return prediction;
}

// A ring whose workers have a share of the weights each.
StepPrediction by_gathers(const TimedModel& model, double compute, const Network& network, const ExchangePlan& plan) {
  struct Layer {
    double bytes = 0;
    double half = 0, forward = 0, backward = 0;  // seconds: of a reduce-scatter or a gather, and of each pass
    bool has_matrix = false;
  };
  std::vector<Layer> layers;  // in the order of backward
  Layer layer;
  double bytes = 0;
  for (std::size_t i = model.bytes.size(); i-- > 0;) {
    bytes += model.bytes[i];
    layer.bytes += model.bytes[i];
    layer.forward += model.forward[i];
    layer.backward += model.backward[i];
    layer.has_matrix |= !model.is_vector[i];
    if (goes_on(model.bytes, i, bytes, plan.bucket_bytes)) continue;
    layer.half += exchange_seconds(std::exchange(bytes, 0), network, plan) / 2;
    if (layer.has_matrix || i == 0) layers.push_back(std::exchange(layer, {}));
  }
  std::vector<std::size_t> asks(layers.size());  // a step's, of layers
  std::iota(asks.rbegin(), asks.rend(), 0);
  for (std::size_t i = 0; i < layers.size(); ++i) asks.push_back(i);

  double now = 0, wire_free = 0, sums = 0, communication = 0;
  std::vector<double> here(layers.size(), -1);  // when a layer's weights are; -1: nobody has gathered them
  const auto gather = [&](std::size_t i) {
    if (here[i] >= 0) return;
    communication += layers[i].half;
    wire_free = here[i] = std::max(wire_free, now) + layers[i].half;
  };
  for (std::size_t k = 0; k < asks.size(); ++k) {
    const Layer& current = layers[asks[k]];
    gather(asks[k]);
    std::size_t end = k + 1;
    double ahead = 0;
    for (; plan.overlap && end < asks.size() && ahead < std::max(1.0, plan.ahead_bytes); ++end) {
      gather(asks[end]);
      if (asks[end] != asks[k]) ahead += layers[asks[end]].bytes;
    }
    std::vector<double> kept(layers.size(), -1);
    for (std::size_t i = k; i < end; ++i) kept[asks[i]] = here[asks[i]];
    here = kept;
    now = std::max(now, here[asks[k]]) + (k < layers.size() ? current.forward : current.backward);
    if (k < layers.size()) continue;
    communication += current.half;
    if (plan.overlap) wire_free = std::max(wire_free, now) + current.half;
    if (!plan.overlap) sums += current.half;
  }
  return {.step = std::max(now, wire_free) + sums, .communication = communication};
}

// The links that push and pull go through in one direction: each server's, and that of a host with workers alone or,
// where every host has a server too, the worker's part of any host's.
class ServerLinks {
 public:
  ServerLinks(const TimedModel& model, const Network& network, const ExchangePlan& plan)
      : rate_(network.bytes_per_second), alpha_(network.alpha), even_(plan.sharding == Sharding::kEven) {
    const int servers = plan.servers;
    const int local = plan.colocated ? std::min(network.workers_per_host, network.workers) : 0;
    const double part = even_part(network, plan);  // spare servers' links are as full as those of hosts with workers
    readers_ = (network.workers - local) * (even_ ? part : 1.0);
    const bool own_part = even_ && plan.colocated && servers == network.hosts();
    const bool all_local = plan.colocated && network.hosts() == 1;
    pulled_ = all_local ? 0 : std::min(network.workers_per_host, network.workers) * (own_part ? 1 - part : 1.0);
    if (!even_) placed_ = place_greedily(model.bytes, servers);
    load_.resize(even_ ? 1 : static_cast<std::size_t>(servers));
  }

  // Tensor i is given to the links at `now`, as push and at once as answer, which share hosts' links; returns when the
  // last has arrived.
  double carry_both_ways(std::size_t i, double bytes, double now) {
    if (readers_ == 0 && pulled_ == 0) return now;
    for (std::size_t s = 0; s < load_.size(); ++s) {
      const bool holds = even_ || placed_[i] == static_cast<int>(s);
      if (!holds && pulled_ == 0) continue;
      load_[s] = std::max(load_[s], now) + (pulled_ + (holds ? readers_ : 0)) * bytes / rate_;
    }
    return *std::ranges::max_element(load_) + 2 * alpha_;
  }

  // Tensor i is given to the links at `now`, all workers' copies of it; returns when the last has arrived.
  double carry(std::size_t i, double bytes, double now) {
    if (readers_ == 0 && pulled_ == 0) return now;
    double& server = load_[even_ ? 0 : static_cast<std::size_t>(placed_[i])];
    server = std::max(server, now) + readers_ * bytes / rate_;
    host_ = std::max(host_, now) + pulled_ * bytes / rate_;
    return std::max(server, host_) + alpha_;
  }

 private:
  double rate_;
  double alpha_;
  bool even_;
  double readers_ = 0;  // copies of a tensor that the link of its server carries
  double pulled_ = 0;   // copies of a tensor that the link of a host with workers carries
  std::vector<int> placed_;
  std::vector<double> load_;  // when each server's link is free; all are alike under even shards
  double host_ = 0;
};

// Servers that answer pushes. A tensor goes in chunks, so that its first are answered while its last are pushed.
StepPrediction by_answers(const TimedModel& model, double compute, const Network& network, const ExchangePlan& plan) {
  constexpr double kChunk = 0x1p20;  // bytes
  const double most = kChunk * (plan.sharding == Sharding::kEven ? plan.servers : 1);
  const ServerLinks free(model, network, plan);
  const auto exchanged = [&](double forward, const std::vector<double>& backward) {
    ServerLinks pushes = free, answers = free;
    double now = forward, done = 0;
    for (std::size_t i = model.bytes.size(); i-- > 0;) {
      now += backward[i];
      const double chunks = std::max(1.0, std::ceil(model.bytes[i] / most)), bytes = model.bytes[i] / chunks;
      for (int chunk = 0; chunk < static_cast<int>(chunks); ++chunk) {
        done = std::max(done, plan.colocated ? pushes.carry_both_ways(i, bytes, now)
                                             : answers.carry(i, bytes, pushes.carry(i, bytes, now)));
      }
    }
    return std::max(now, done);
  };
  const std::vector<double> at_once(model.bytes.size(), 0.0);
  StepPrediction prediction{.communication = exchanged(0, at_once)};
  const double forward = std::accumulate(model.forward.begin(), model.forward.end(), 0.0);
  prediction.step = plan.overlap ? exchanged(forward, model.backward) : compute + prediction.communication;
  return prediction;
}

// Servers that are asked for weights.
StepPrediction by_pulls(const TimedModel& model, double compute, const Network& network, const ExchangePlan& plan) {
  const ServerLinks free(model, network, plan);
  const std::size_t count = model.bytes.size();
  ServerLinks alone = free;
  double all_pulled = 0;
  for (std::size_t i = 0; i < count; ++i) all_pulled = std::max(all_pulled, alone.carry(i, model.bytes[i], 0));
  StepPrediction prediction{.communication = 2 * all_pulled};
  if (!plan.overlap) {
    prediction.step = compute + 2 * all_pulled;
    return prediction;
  }
  ServerLinks pulls = free;
  double now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    now = std::max(now, pulls.carry(i, model.bytes[i], 0)) + model.forward[i];
  }
  ServerLinks pushes = free;
  double pushed = now;
  for (std::size_t i = count; i-- > 0;) {
    now += model.backward[i];
    pushed = std::max(pushed, pushes.carry(i, model.bytes[i], now));
  }
  prediction.step = std::max(now, pushed);
  return prediction;
}

}  // namespace

std::vector<double> bucket_sizes(std::span<const double> tensors, double bucket_bytes) {
  std::vector<double> buckets;
  double bucket = 0;
  for (std::size_t i = tensors.size(); i-- > 0;) {
    bucket += tensors[i];
    if (!goes_on(tensors, i, bucket, bucket_bytes)) buckets.push_back(std::exchange(bucket, 0));
  }
  return buckets;
}

Status check_step(const ModelProfile& profile, double compute, const Network& network, const ExchangePlan& plan) {
  constexpr int kMost = 1 << 20;
  const auto within = [](double value, double least) { return std::isfinite(value) && value >= least; };
  if (!within(compute, 0) || compute <= 0) {
    return Status::invalid_argument(fmt::format("{} s for a step alone: must be above 0", compute));
  }
  if (!within(network.bytes_per_second, 0) || network.bytes_per_second <= 0 || !within(network.alpha, 0)) {
    return Status::invalid_argument(
        fmt::format("a network of {} bytes/s and {} s a message: must be above 0, and from 0", network.bytes_per_second,
                    network.alpha));
  }
  if (network.workers < 1 || network.workers > kMost || network.workers_per_host < 1) {
    return Status::invalid_argument(fmt::format("{} workers, {} a host: must be 1 to {}, and at least 1",
                                                network.workers, network.workers_per_host, kMost));
  }
  if (!within(plan.bucket_bytes, 0)) {
    return Status::invalid_argument(fmt::format("buckets of {} bytes: must be from 0", plan.bucket_bytes));
  }
  if (plan.stage < 0 || plan.stage > 3 || (plan.stage > 0 && plan.exchange != Exchange::kRing)) {
    return Status::invalid_argument(
        fmt::format("stage {}: must be 0, or 1 to 3 where a ring exchanges gradients", plan.stage));
  }
  const bool is_servers = plan.exchange == Exchange::kServers;
  const int fewest = is_servers ? 1 : 0;
  if (plan.servers < fewest || plan.servers > kMost) {
    return Status::invalid_argument(fmt::format("{} servers: must be {} to {}", plan.servers, fewest, kMost));
  }
  if (is_servers && plan.colocated && plan.servers > network.hosts()) {
    return Status::invalid_argument(fmt::format("{} servers on the hosts of workers: must be at most {}, one a host",
                                                plan.servers, network.hosts()));
  }
  const bool may_have_spare = is_servers && plan.colocated && plan.sharding == Sharding::kEven &&
                              plan.servers == network.hosts() && plan.spare_servers < network.hosts();
  if (plan.spare_servers < 0 || (plan.spare_servers > 0 && !may_have_spare)) {
    return Status::invalid_argument(
        fmt::format("{} spare servers: must be from 0, and fewer than the {} hosts with workers, each of which has an "
                    "even part of a server",
                    plan.spare_servers, network.hosts()));
  }
  if (profile.tensors.empty()) return Status::invalid_argument("a model without tensors cannot be exchanged");
  return {};
}

Result<StepPrediction> predict_step(const ModelProfile& profile, double compute, const Network& network,
                                    const ExchangePlan& plan) {
  SYNCOPATE_RETURN_IF_ERROR(check_step(profile, compute, network, plan));
  const TimedModel model = timed_model(profile, compute);
  const bool has_servers = plan.exchange == Exchange::kServers || plan.exchange == Exchange::kByteps;
  const bool alone = network.workers == 1 && !has_servers;
  StepPrediction prediction{.step = compute};
  if (!alone) {
    const auto by = plan.stage == 3                                  ? &by_gathers
                    : plan.exchange != Exchange::kServers            ? &by_buckets
                    : plan.protocol == ServerProtocol::kAnswerPushes ? &by_answers
                                                                     : &by_pulls;
    prediction = by(model, compute, of_pushers(network, plan), plan);
  }
  prediction.step = std::max(prediction.step, compute);  // sums of parts may round below it
  prediction.exposed = prediction.step - compute;
  return prediction;
}

}  // namespace syncopate::prediction
