#include "prediction/communication_cost.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>

namespace syncopate::prediction {
namespace {

// n^2 + kn - 2k, which divides both parts.
double divisor(double n, double k) { return n * n + k * n - 2 * k; }

// Returns how many of the ranks from `first` up to `last`, those of a host, have their partner at `distance`, a power
// of two, on another host. Of two partners the lower one's number lacks the bit of the distance.
int partners_elsewhere(int first, int last, int distance) {
  const auto without_bit_below = [distance](int end) {
    return end / (2 * distance) * distance + std::min(end % (2 * distance), distance);
  };
  const int pairs = last - distance > first ? without_bit_below(last - distance) - without_bit_below(first) : 0;
  return last - first - 2 * pairs;
}

// Returns the same for the host that has most of them, of `ranks` ranks in all.
int most_partners_elsewhere(int ranks, int ranks_per_host, int distance) {
  if (distance >= ranks_per_host) return std::min(ranks, ranks_per_host);
  int most = 0;
  for (int first = 0; first < ranks; first += ranks_per_host) {
    most = std::max(most, partners_elsewhere(first, std::min(first + ranks_per_host, ranks), distance));
  }
  return most;
}

}  // namespace

double ring_seconds(double bytes, const Network& network) {
  const double p = network.workers;
  const double carried = network.hosts() > 1 ? 2 * (p - 1) / p * bytes : 0;
  return 2 * (p - 1) * network.alpha + carried / network.bytes_per_second;
}

double tree_seconds(double bytes, const Network& network) {
  const double levels = std::ceil(std::log2(network.workers));
  double copies = 0;  // of all bytes, over the busiest host's link, one way
  for (int distance = 1; distance < network.workers; distance *= 2) {
    const int beyond = network.workers - distance;  // ranks that have one so far below them
    if (distance >= network.workers_per_host) copies += std::min({network.workers_per_host, distance, beyond});
  }
  return 2 * (levels * network.alpha + copies * bytes / network.bytes_per_second);
}

double halving_doubling_seconds(double bytes, const Network& network) {
  const unsigned power = std::bit_floor(static_cast<unsigned>(network.workers));
  const double p = power;
  const int extra = network.workers - static_cast<int>(power);
  const double folds = network.hosts() > 1 ? std::min(extra, network.workers_per_host)
                                           : 0;  // ranks of a host that give all they have away
  const double folded = extra > 0 ? 2 * (network.alpha + folds * bytes / network.bytes_per_second) : 0;
  double parts = 0;  // of all bytes, over a host's link, one way
  for (int distance = 1; distance < static_cast<int>(power); distance *= 2) {
    parts += most_partners_elsewhere(static_cast<int>(power), network.workers_per_host, distance) / (2.0 * distance);
  }
  return folded + 2 * (std::log2(p) * network.alpha + parts * bytes / network.bytes_per_second);
}

double hierarchical_seconds(double bytes, const Network& network) {
  return ring_seconds(bytes, {.alpha = network.alpha,
                              .bytes_per_second = network.bytes_per_second,
                              .workers = network.hosts(),
                              .workers_per_host = 1});
}

double byteps_seconds(double bytes, const Network& network, int server_hosts) {
  const double n = network.hosts();
  const double k = std::min<double>(server_hosts, n);
  if (n == 1) return 0;
  return 2 * network.alpha + 2 * n * (n - 1) * bytes / (divisor(n, k) * network.bytes_per_second);
}

BytepsParts byteps_parts(int worker_hosts, int server_hosts) {
  assert(worker_hosts >= 2 && server_hosts >= 0 && server_hosts <= worker_hosts);
  const double n = worker_hosts;
  const double k = server_hosts;
  return {.on_server_host = 2 * (n - 1) / divisor(n, k), .on_worker_host = (n - k) / divisor(n, k)};
}

std::vector<int> place_greedily(std::span<const double> bytes, int servers) {
  assert(servers >= 1);
  using Load = std::pair<double, int>;  // of a server; among equals the first is the least
  std::vector<Load> loads;
  for (int server = 0; server < servers; ++server) loads.emplace_back(0, server);
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least(std::greater<>(), std::move(loads));
  std::vector<int> placed;
  for (const double size : bytes) {
    const auto [load, server] = least.top();
    least.pop();
    least.emplace(load + size, server);
    placed.push_back(server);
  }
  return placed;
}

}  // namespace syncopate::prediction
