#include "experiments/lab/why/exchange_parts.h"

#include <algorithm>

namespace syncopate::experiments {
namespace {

// A server with that many times the mean's bytes is hot.
constexpr double kHot = 1.25;
// What one server takes longer than its bytes explain counts if it is at least that part of the exposed exchange.
constexpr double kSlowPart = 0.2;

// What a worker's link leaves exposed where nothing but it is full: as much stays hidden behind computing as is now.
double exposed_by_own_link(const ExchangeFigures& figures, double worker_link_ms) {
  return std::max(0.0, worker_link_ms - std::max(0.0, figures.communication_ms - figures.exposed_ms));
}

// What a link needs for these bytes of one process. Weights come back from a server after the gradients that they were
// made of; the two directions of an allreduce are under way at once.
double link_ms_of(double in, double out, const RunPace& pace) {
  if (!pace.link || pace.host_link) return 0;
  return (pace.servers > 0 ? in + out : std::max(in, out)) / pace.link->bytes_per_second * 1e3;
}

std::vector<ServerLoad> loads_of(const ExchangeFigures& figures, const RunPace& pace) {
  std::vector<ServerLoad> loads;
  if (figures.rounds <= 0) return loads;
  for (const auto& [rank, server] : pace.of_servers) {
    const double in = static_cast<double>(server.bytes_in) / figures.rounds;
    const double out = static_cast<double>(server.bytes_out) / figures.rounds;
    const auto place = static_cast<std::size_t>(rank);
    loads.push_back({.server = rank,
                     .bytes_in = in,
                     .bytes_out = out,
                     .link_ms = link_ms_of(in, out, pace),
                     .busy_ms = seconds(server.busy) * 1e3 / figures.rounds,
                     .core_wait_ms = seconds(server.core_wait.value_or(Duration::zero())) * 1e3 / figures.rounds,
                     .alone_ms = place < figures.alone_ms.size() ? figures.alone_ms[place] : 0});
  }
  return loads;
}

double bytes_of(const ServerLoad& load) { return load.bytes_in + load.bytes_out; }

template <typename Value>
double mean_of(const std::vector<ServerLoad>& loads, Value&& value) {
  double sum = 0;
  for (const ServerLoad& load : loads) sum += value(load);
  return loads.empty() ? 0 : sum / static_cast<double>(loads.size());
}

// How long a step was held up by the server alone, beyond what its bytes take. If the link's rate is known, its own
// link and the others' work explain that much. If not, a server that is as fast as the others is alone for its share of
// the exchange at most: with the time x that it takes longer, alone = share (communication - x) + x.
double longer_than_its_bytes(const ServerLoad& load, const std::vector<ServerLoad>& loads,
                             const ExchangeFigures& figures, const RunPace& pace) {
  const double mean_bytes = mean_of(loads, bytes_of);
  if (mean_bytes <= 0) return 0;
  const double share = bytes_of(load) / mean_bytes / static_cast<double>(loads.size());
  if (pace.link) {
    double others_busy = 0;
    for (const ServerLoad& other : loads) {
      if (other.server != load.server) others_busy += other.busy_ms;
    }
    others_busy *= bytes_of(load) / mean_bytes / static_cast<double>(loads.size() - 1);
    return load.alone_ms - std::max(load.link_ms, share * link_ms_of(figures.bytes_in, figures.bytes_out, pace)) -
           others_busy - 2 * pace.link->delay_ms;
  }
  if (share >= 1) return 0;
  return (load.alone_ms - share * figures.communication_ms) / (1 - share);
}

void find_hot_shard(const ExchangeFigures& figures, const RunPace& pace, ExchangeParts& parts) {
  const std::vector<ServerLoad>& loads = parts.of_servers;
  const double mean_bytes = mean_of(loads, bytes_of);
  if (loads.size() < 2 || mean_bytes <= 0) return;
  const auto fullness_of = [&](const ServerLoad& load) {
    const double mean = bytes_of(load) / mean_bytes;
    if (pace.server_parts.empty()) return mean;
    return mean / (pace.server_parts[static_cast<std::size_t>(load.server)] * pace.servers);
  };
  const auto hot = std::ranges::max_element(loads, {}, fullness_of);
  parts.hottest_over_mean = fullness_of(*hot);
  if (parts.hottest_over_mean < kHot) return;
  parts.hot_server = hot->server;
  // If all servers had as much, the workers' own links may be the full ones. What was hidden behind computing stays so.
  double after = figures.exposed_ms / parts.hottest_over_mean;
  if (hot->link_ms > 0 && pace.exchanges_alone()) {
    after = std::clamp(exposed_by_own_link(figures, parts.worker_link_ms), after, figures.exposed_ms);
  } else if (hot->link_ms > 0) {
    const double now = std::max(hot->link_ms, parts.worker_link_ms);
    const double even = std::max(hot->link_ms / parts.hottest_over_mean, parts.worker_link_ms) / now;
    const double one_way = now / 2;
    after = figures.exposed_ms >= one_way ? figures.exposed_ms * even
                                          : std::max(0.0, one_way * even - (one_way - figures.exposed_ms));
  }
  parts.hot_shard = figures.exposed_ms - after;
}

void find_slow_server(const ExchangeFigures& figures, const RunPace& pace, ExchangeParts& parts) {
  const std::vector<ServerLoad>& loads = parts.of_servers;
  if (loads.size() < 2) return;
  double most = 0;
  for (const ServerLoad& load : loads) {
    const double longer = longer_than_its_bytes(load, loads, figures, pace);
    if (longer <= most) continue;
    most = longer;
    parts.slowest_server = load.server;
  }
  parts.slow_server = std::min(most, figures.exposed_ms - parts.hot_shard);
  if (parts.slow_server >= kSlowPart * figures.exposed_ms) return;
  parts.slow_server = 0;
  parts.slowest_server.reset();
}

}  // namespace

ExchangeParts divide_exchange(const ExchangeFigures& figures, const RunPace& pace) {
  ExchangeParts parts;
  parts.of_servers = loads_of(figures, pace);
  const double bytes = std::max(figures.bytes_out, figures.bytes_in);
  parts.worker_bytes = bytes;
  parts.worker_link_ms = std::max(link_ms_of(figures.bytes_in, figures.bytes_out, pace), pace.schedule_link_ms);
  if (pace.link && pace.host_link) {
    const double of_server =
        mean_of(parts.of_servers, [](const ServerLoad& load) { return std::max(load.bytes_in, load.bytes_out); });
    parts.worker_bytes = pace.host_link->of_workers * bytes + pace.host_link->of_servers * of_server;
    parts.worker_link_ms = parts.worker_bytes / pace.link->bytes_per_second * 1e3;
  }
  if (pace.link) parts.delay_ms = pace.delays_a_step * pace.link->delay_ms;
  find_hot_shard(figures, pace, parts);
  find_slow_server(figures, pace, parts);

  const std::vector<ServerLoad>& loads = parts.of_servers;
  const double rest = figures.exposed_ms - parts.hot_shard - parts.slow_server;
  // While one worker's weights leave a server, another's gradients come, unless all go together.
  const double ways = pace.exchanges_alone() ? 2 : 1;
  const double fan_in = mean_of(loads, [&](const ServerLoad& load) { return load.link_ms / ways; });
  double busy = 0, core_wait = 0;
  for (const ServerLoad& load : loads) {
    if (load.server == parts.slowest_server || load.server == parts.hot_server) continue;
    busy = std::max(busy, load.busy_ms);
    core_wait = std::max(core_wait, load.core_wait_ms);
  }
  parts.own_link_exposed_ms = exposed_by_own_link(figures, parts.worker_link_ms);
  parts.link = pace.exchanges_alone() ? parts.own_link_exposed_ms : parts.worker_link_ms;
  parts.incast = std::max(0.0, fan_in - parts.link);
  parts.servers = busy;
  parts.cores = core_wait;
  // Messages of several buckets may be on their way at once: delays take at most what links leave of the exchange.
  parts.delay = std::clamp(figures.communication_ms - parts.link - parts.incast, 0.0, parts.delay_ms);
  const double needed = parts.link + parts.incast + parts.servers + parts.cores + parts.delay;
  const double scale = needed > rest ? std::max(0.0, rest) / needed : 1;
  for (double* part : {&parts.link, &parts.incast, &parts.servers, &parts.cores, &parts.delay}) *part *= scale;
  parts.unexplained = rest - (parts.link + parts.incast + parts.servers + parts.cores + parts.delay);
  return parts;
}

}  // namespace syncopate::experiments
