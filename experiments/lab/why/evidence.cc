#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "common/text/format.h"
#include "experiments/lab/why/causes.h"

namespace syncopate::experiments {
namespace {

std::string percent(double part) { return fmt::format("{:.0f} %", 100 * part); }

std::string each_way(double link_ms, const RunPace& pace) {
  return pace.servers > 0 ? fmt::format("{:.3g} ms in and {:.3g} ms out", link_ms / 2, link_ms / 2)
                          : fmt::format("{:.3g} ms each way", link_ms);
}

const WorkerPace& costliest(const Waterfall& waterfall) {
  return *std::ranges::max_element(waterfall.of_workers, {}, &WorkerPace::costs_ms);
}

double usual_compute(const Waterfall& waterfall) {
  std::vector<double> medians;
  for (const WorkerPace& worker : waterfall.of_workers) medians.push_back(worker.compute_ms);
  std::ranges::sort(medians);
  return medians[(medians.size() - 1) / 2];
}

// Nothing where nobody waited for it, as under consistencies that wait for no worker.
std::string waits_text(const char* link, const WorkerPace& worker) {
  constexpr double kShown = 0.005;
  return worker.last_of_steps < kShown
             ? ""
             : fmt::format("{}{} of all waits for workers are for it", link, percent(worker.last_of_steps));
}

std::string straggler_text(const Waterfall& waterfall) {
  const WorkerPace& worst = costliest(waterfall);
  const double usual = usual_compute(waterfall);
  const double factor = usual > 0 ? (worst.compute_ms + worst.delay_ms) / usual : 1;
  std::string text = fmt::format("worker {} takes {:.1f} x the median worker's {:.3g} ms", worst.worker, factor, usual);
  if (worst.delay_ms > 0) text += fmt::format(", {:.3g} ms of it delays by --straggler", worst.delay_ms);
  return text + waits_text("; ", worst);
}

std::string imbalance_text(const Waterfall& waterfall) {
  const WorkerPace& worst = costliest(waterfall);
  if (worst.costs_ms <= 0) return "no worker costs more than the fastest one's median step";
  return fmt::format("worker {} costs most, {:.3g} ms", worst.worker, worst.costs_ms) + waits_text(", and ", worst);
}

std::string bubble_text(const Waterfall& waterfall, const PacedPipeline& pipeline) {
  std::vector<std::string> stages;
  for (const double ms : stages_ms(waterfall.of_workers, pipeline)) stages.push_back(fmt::format("{:.3g}", ms));
  return fmt::format("{} stages compute for {} ms, in {} microbatch{}", pipeline.stages, fmt::join(stages, ", "),
                     pipeline.microbatches, pipeline.microbatches == 1 ? "" : "es");
}

std::string messages_text(const PacedPipeline& pipeline) {
  double most = 0;
  for (const double ms : pipeline.to_next_ms) most = std::max(most, ms);
  return fmt::format(
      "a microbatch's activations take a link up to {:.3g} ms, and {:.3g} ms to arrive; their gradient too", most,
      pipeline.delay_ms);
}

std::string cores_text(const Waterfall& waterfall, const RunPace& pace) {
  if (pace.is_simulated) return "a simulated worker has a core of its own";
  if (pace.on_device) return "";  // the device's clock measures, whatever the host waits for
  if (!waterfall.core_waits_recorded) return "not recorded: for how long threads were ready without a core";
  std::string text;
  if (pace.machine) {
    const int servers = pace.processes - pace.workers;
    text = fmt::format("{} worker{}{} on {:.3g} core{}", pace.workers, pace.workers == 1 ? "" : "s",
                       servers > 0 ? fmt::format(" and {} server{}", servers, servers == 1 ? "" : "s") : "",
                       pace.machine->cores, pace.machine->cores == 1 ? "" : "s");
    if (pace.machine->others) text += fmt::format("; others use {} of their time", percent(*pace.machine->others));
  }
  return text;
}

const ServerLoad* load_of(const Waterfall& waterfall, std::optional<int> server) {
  const auto& loads = waterfall.exchange.of_servers;
  const auto found = std::ranges::find_if(loads, [&](const ServerLoad& load) { return load.server == server; });
  return found == loads.end() ? nullptr : &*found;
}

std::string bytes(double value) { return format_bytes(value); }

std::string link_text(const Waterfall& waterfall, const RunPace& pace) {
  const ExchangeParts& exchange = waterfall.exchange;
  if (pace.oversubscription) {
    return fmt::format(
        "not recorded: which bytes cross the racks' lines, {:g} times less than their hosts can send; {} "
        "a step and worker",
        *pace.oversubscription, bytes(exchange.worker_bytes));
  }
  if (pace.shares_links) {
    return fmt::format("not recorded: which bytes cross the links that hosts' processes share; {} a step and worker",
                       bytes(exchange.worker_bytes));
  }
  if (!pace.link) {
    return pace.workers == 1 && pace.servers == 0
               ? ""
               : fmt::format("not recorded: the link's rate{}; {} a step and worker",
                             pace.is_own_program ? "" : " (no --shape)", bytes(exchange.worker_bytes));
  }
  if (pace.host_link) {
    return fmt::format("the busiest host's link of {}: {} a step of its processes take {:.3g} ms each way of {:.3g} ms",
                       pace.link->rate, bytes(exchange.worker_bytes), exchange.worker_link_ms, waterfall.measured_ms);
  }
  return fmt::format("each worker's link of {}: {} a step take {} of {:.3g} ms", pace.link->rate,
                     bytes(exchange.worker_bytes), each_way(exchange.worker_link_ms, pace), waterfall.measured_ms);
}

std::string incast_text(const Waterfall& waterfall, const RunPace& pace) {
  if (pace.servers == 0) return "";
  if (waterfall.exchange.of_servers.empty()) return "not recorded: the bytes of each server";
  const ServerLoad& most = *std::ranges::max_element(waterfall.exchange.of_servers, {}, [](const ServerLoad& load) {
    return std::max(load.bytes_in, load.bytes_out);
  });
  const double carried = std::max(most.bytes_in, most.bytes_out);
  if (pace.host_link) return "";
  if (!pace.link)
    return fmt::format("server {} receives {} a step of {} workers", most.server, bytes(carried), pace.workers);
  return fmt::format("server {}'s link: {} a step of {} workers take {} of {:.3g} ms; a worker's link {:.3g} ms",
                     most.server, bytes(carried), pace.workers, each_way(most.link_ms, pace), waterfall.measured_ms,
                     waterfall.exchange.worker_link_ms);
}

std::string hot_text(const Waterfall& waterfall, const RunPace& pace) {
  const ExchangeParts& exchange = waterfall.exchange;
  if (pace.servers < 2) return "";
  if (exchange.of_servers.empty()) return "not recorded: the bytes of each server";
  const ServerLoad* hot = load_of(waterfall, exchange.hot_server);
  const char* measure = pace.server_parts.empty() ? "the mean" : "its part";
  if (hot == nullptr) return fmt::format("the largest server has {:.2f} x {}", exchange.hottest_over_mean, measure);
  std::string text = fmt::format("server {} has {:.2f} x {}: {} in a step", hot->server, exchange.hottest_over_mean,
                                 measure, bytes(hot->bytes_in));
  if (pace.link && !pace.host_link) text += fmt::format(", which take its link {}", each_way(hot->link_ms, pace));
  return text;
}

std::string slow_text(const Waterfall& waterfall, const RunPace& pace) {
  const ExchangeParts& exchange = waterfall.exchange;
  if (pace.servers < 2) return "";
  const ServerLoad* slow = load_of(waterfall, exchange.slowest_server);
  if (slow == nullptr) return exchange.of_servers.empty() ? "not recorded: how busy each server was" : "";
  double others = 0;
  for (const ServerLoad& load : exchange.of_servers) {
    if (load.server != slow->server) others = std::max(others, load.alone_ms);
  }
  return fmt::format(
      "server {} alone is waited for {:.3g} ms a step, another one at most {:.3g} ms; its thread is busy "
      "for {:.3g} ms, with {:.2f} x the mean's bytes",
      slow->server, slow->alone_ms, others, slow->busy_ms,
      (slow->bytes_in + slow->bytes_out) * static_cast<double>(exchange.of_servers.size()) / [&] {
        double all = 0;
        for (const ServerLoad& load : exchange.of_servers) all += load.bytes_in + load.bytes_out;
        return all;
      }());
}

std::string servers_text(const Waterfall& waterfall, const RunPace& pace) {
  if (pace.servers == 0) return "";
  if (waterfall.exchange.of_servers.empty()) return "not recorded: how busy each server was";
  const ServerLoad& busiest = *std::ranges::max_element(waterfall.exchange.of_servers, {}, &ServerLoad::busy_ms);
  return fmt::format("server {} is busy for {:.3g} ms of a step, {}", busiest.server, busiest.busy_ms,
                     percent(std::min(1.0, busiest.busy_ms / waterfall.measured_ms)));
}

}  // namespace

std::string ideal_text(const Waterfall& waterfall, const RunPace& pace) {
  if (pace.pipeline) return "what stages compute, if all had as much and none waited";
  return fmt::format("worker {} computes fastest, x {:.3g} worker{}", waterfall.fastest, waterfall.workers,
                     waterfall.workers == 1 ? "" : "s");
}

std::string evidence_of(PartKind kind, const Waterfall& waterfall, const RunPace& pace) {
  switch (kind) {
    case PartKind::kStraggler:
      return waterfall.part(kind) > 0 ? straggler_text(waterfall) : "";
    case PartKind::kImbalance:
      return pace.workers > 1 ? imbalance_text(waterfall) : "";
    case PartKind::kDelays:
      return waterfall.part(kind) > 0 ? "by --straggler, of workers that are not slow: they stand for computing" : "";
    case PartKind::kCores:
      return cores_text(waterfall, pace);
    case PartKind::kBubble:
      return pace.pipeline ? bubble_text(waterfall, *pace.pipeline) : "";
    case PartKind::kMessages:
      return pace.pipeline && waterfall.part(kind) > 0 ? messages_text(*pace.pipeline) : "";
    case PartKind::kLink:
      return link_text(waterfall, pace);
    case PartKind::kIncast:
      return incast_text(waterfall, pace);
    case PartKind::kHotShard:
      return hot_text(waterfall, pace);
    case PartKind::kSlowServer:
      return slow_text(waterfall, pace);
    case PartKind::kServers:
      return servers_text(waterfall, pace);
    case PartKind::kDelay:
      return pace.link && waterfall.exchange.delay_ms > 0
                 ? fmt::format(
                       "{:.0f} messages of a step that follow each other, but for buckets that overlap, {:.3g} "
                       "ms each",
                       std::ceil(pace.delays_a_step), pace.link->delay_ms)
                 : "";
    case PartKind::kExchange:
      return pace.pairs_wait ? "not recorded: which part of it is waiting for a partner"
             : may_wait_for_computing(waterfall, pace)
                 ? fmt::format("exposed {:.3g} ms of {:.3g} ms under way, waits for others' computing among it",
                               waterfall.exchange_ms, waterfall.communication_ms)
             : pace.workers > 1 ? fmt::format("exposed {:.3g} ms of {:.3g} ms under way", waterfall.exchange_ms,
                                              waterfall.communication_ms)
                                : "";
    case PartKind::kCopies:
      return pace.on_device ? fmt::format("{:.3g} ms of copies between GPU and host a step", waterfall.device.copy_ms)
                            : "";
    case PartKind::kLaunches:
      return pace.captures_steps ? fmt::format("the host takes {:.3g} ms to give the GPU a step, as one CUDA graph",
                                               waterfall.device.launch_ms)
                                 : "";
    case PartKind::kIdle:
      return pace.on_device ? "between steps the GPU had nothing to do, and its host did not give it the next" : "";
    case PartKind::kData:
    case PartKind::kCodec:
    case PartKind::kOptimizer:
    case PartKind::kDropped:
    case PartKind::kOther:
      return "";
  }
  return "";
}

}  // namespace syncopate::experiments
