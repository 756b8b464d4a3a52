#include "experiments/lab/why/waterfall.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "experiments/lab/report/statistics.h"
#include "experiments/lab/why/late_workers.h"

namespace syncopate::experiments {
namespace {

// A worker whose median computing is that many times that of most workers is slow in every step.
constexpr double kSlow = 1.25;
// The same of its mean delay by --straggler. Drawn delays of all workers have means that differ, but not as much.
constexpr double kMuchDelayed = 3;

struct WindowOfSteps {
  std::vector<const StepRow*> rows;
  bool is_shared = true;      // all workers train in it; false: all steps
  double begin = 0, end = 0;  // ms
};

// The steady window of run_report.h.
WindowOfSteps window_of(std::span<const StepRow> rows, const RunPace& pace) {
  struct Span {
    std::int64_t first_step = -1;
    double begin = 0, end = -1;
    bool is_warm = false;
  };
  std::vector<Span> spans(static_cast<std::size_t>(pace.workers));
  const auto span_of = [&](const StepRow& row) { return &spans[static_cast<std::size_t>(row.worker)]; };
  const auto counts = [&](const StepRow& row) { return row.worker < pace.workers; };
  const auto is_warm = [&](const StepRow& row) { return row.step >= span_of(row)->first_step + pace.warmup_steps; };
  for (const StepRow& row : rows) {
    if (!counts(row)) continue;
    Span& its = *span_of(row);
    if (its.first_step < 0) its.first_step = row.step;
    if (is_warm(row) && !its.is_warm) its = {its.first_step, row.end - row.total, row.end, true};
    its.end = row.end;
  }
  double begin = 0, end = std::numeric_limits<double>::max();
  bool is_shared = true;
  for (std::size_t worker = 0; worker < spans.size(); ++worker) {
    const Span& span = spans[worker];
    const bool is_lost = pace.lost.contains(static_cast<int>(worker));
    if (is_lost && !span.is_warm) continue;
    is_shared = is_shared && span.is_warm;
    begin = std::max(begin, span.begin);
    if (!is_lost) end = std::min(end, span.end);
  }
  WindowOfSteps window{.rows = {}, .is_shared = is_shared && begin < end, .begin = begin, .end = end};
  for (const StepRow& row : rows) {
    if (!counts(row)) continue;
    if (!window.is_shared || (is_warm(row) && row.end > begin && row.end <= end)) window.rows.push_back(&row);
  }
  if (!window.is_shared && !window.rows.empty()) {
    window.begin = std::numeric_limits<double>::max();
    window.end = 0;
    for (const StepRow* row : window.rows) {
      window.begin = std::min(window.begin, row->end - row->total);
      window.end = std::max(window.end, row->end);
    }
  }
  return window;
}

// How many workers trained, in the mean over the window: each counts with the part of it that its steps take. The
// step that the window's end cuts is not among them.
double workers_in(const WindowOfSteps& window, const RunPace& pace) {
  const double length = window.end - window.begin;
  std::map<int, std::pair<double, double>> of_workers;  // sum and number of their steps
  for (const StepRow* row : window.rows) {
    of_workers[row->worker].first += row->total;
    of_workers[row->worker].second += 1;
  }
  double workers = 0;
  for (const auto& [worker, steps] : of_workers) {
    const auto& [sum, count] = steps;
    const double cut = pace.lost.contains(worker) ? 0 : sum / count;
    workers += length > 0 ? std::min(1.0, (sum + cut) / length) : 1;
  }
  return workers;
}

// The sums over the window's steps from which the means are made.
struct Sums {
  double data = 0, cores = 0, codec = 0, optimizer = 0, dropped = 0, other = 0, exchange = 0;
  double total = 0, communication = 0, bytes_out = 0, bytes_in = 0, samples = 0;
  double wait_for_data = 0, wait_for_cores = 0;
  std::vector<double> own_compute, own_straggle;              // by worker
  std::vector<double> waits_for_compute, waits_for_straggle;  // by the worker waited for
  std::vector<double> waits_for;
  std::vector<double> alone;  // by server
};

// The server whose responses ended the row's wait was the only one waited for, for so long.
void add_alone(const StepRow& row, double ms, const RunPace& pace, Sums& sums) {
  const int server = row.last_shard < 0 ? -1 : row.last_shard / std::max(1, pace.shards_per_server);
  if (server >= 0 && server < pace.servers) sums.alone[static_cast<std::size_t>(server)] += ms;
}

void add_wait(const StepRow& row, const LateWorkers& late, const RunPace& pace, Sums& sums) {
  const WaitForWorker wait = late.wait_of(row);
  double exchange = row.wait - wait.ms, under_way = std::max(0.0, row.communication - wait.ms);
  if (wait.worker >= 0) {
    const auto last = static_cast<std::size_t>(wait.worker);
    const auto part = [&](Lateness lateness) { return wait.parts[static_cast<std::size_t>(lateness)]; };
    sums.wait_for_data += part(Lateness::kData);
    sums.wait_for_cores += part(Lateness::kCores);
    sums.waits_for_compute[last] += part(Lateness::kCompute);
    sums.waits_for_straggle[last] += part(Lateness::kStraggle);
    sums.waits_for[last] += wait.ms - part(Lateness::kExchange);
    exchange += part(Lateness::kExchange);
    under_way += part(Lateness::kExchange);  // that worker's, of the step before
    if (wait.before != nullptr) {
      add_alone(*wait.before, std::min(part(Lateness::kExchange), wait.before->last_shard_alone), pace, sums);
    }
  }
  // Its own thread may have been ready before it had a core to go on with, and so may others' in the same exchange.
  const double without_core = std::min(woken_late_ms(row) + late.others_without_core_ms(row), std::max(0.0, exchange));
  sums.cores += without_core;
  exchange -= without_core;
  // What is not within backward goes on beside the wire, or in turns with it.
  const double codec = std::max(0.0, row.codec - row.backward_codec);
  const double exposed_codec = row.communication > 0 ? exchange * std::min(1.0, codec / row.communication) : 0;
  sums.codec += row.backward_codec + exposed_codec;
  sums.exchange += exchange - exposed_codec;
  sums.communication += std::max(under_way, exchange);  // nobody waits for an exchange that is not under way
}

Sums sums_of(const std::vector<const StepRow*>& rows, const LateWorkers& late, const RunPace& pace) {
  Sums sums;
  const auto workers = static_cast<std::size_t>(pace.workers);
  for (auto* by_worker :
       {&sums.own_compute, &sums.own_straggle, &sums.waits_for_compute, &sums.waits_for_straggle, &sums.waits_for}) {
    by_worker->assign(workers, 0);
  }
  sums.alone.assign(static_cast<std::size_t>(pace.servers), 0);
  for (const StepRow* row : rows) {
    const auto worker = static_cast<std::size_t>(row->worker);
    sums.total += row->total;
    sums.data += row->data;
    sums.own_straggle[worker] += row->straggle;
    sums.cores += computing_without_core_ms(*row);
    sums.samples += row->samples;
    sums.own_compute[worker] += computed_ms(*row);
    sums.optimizer += row->optimizer;
    sums.dropped += row->dropped;
    sums.bytes_out += row->bytes_out;
    sums.bytes_in += row->bytes_in;
    sums.other += row->total - row->data - row->forward - row->backward - row->straggle - row->wait - row->optimizer;
    add_alone(*row, row->last_shard_alone, pace, sums);
    add_wait(*row, late, pace, sums);
  }
  return sums;
}

// What workers would wait for each other, of the mean step, if they met every so many of these steps: for the one that
// takes longest over all of them. None where there are fewer.
std::optional<double> waits_in(const std::vector<const StepRow*>& rows, const RunPace& pace, std::int64_t steps) {
  std::map<std::int64_t, std::map<int, std::pair<double, std::int64_t>>> meetings;  // by worker: the time of how many
  for (const StepRow* row : rows) {
    auto& [ms, count] = meetings[row->step / steps][row->worker];
    ms += row->data + row->forward + row->backward + row->straggle;
    ++count;
  }
  double waits = 0, counted = 0;
  for (const auto& [meeting, workers] : meetings) {
    const auto is_whole = [&](const auto& each) { return each.second.second == steps; };
    if (static_cast<int>(workers.size()) < pace.workers || !std::ranges::all_of(workers, is_whole)) continue;
    double longest = 0, sum = 0;
    for (const auto& [worker, time] : workers) {
      longest = std::max(longest, time.first);
      sum += time.first;
    }
    waits += longest - sum / pace.workers;
    counted += static_cast<double>(steps);
  }
  return counted > 0 ? std::optional(waits / counted) : std::nullopt;
}

std::vector<WorkerPace> paces_of(const std::vector<const StepRow*>& rows, const RunPace& pace) {
  std::vector<WorkerPace> paces;
  for (int worker = 0; worker < pace.workers; ++worker) {
    std::vector<double> compute, optimizer, delay;
    for (const StepRow* row : rows) {
      if (row->worker != worker) continue;
      compute.push_back(computed_ms(*row));
      optimizer.push_back(row->optimizer);
      delay.push_back(row->straggle);
    }
    if (compute.empty()) continue;
    paces.push_back({.worker = worker,
                     .steps = static_cast<std::int64_t>(compute.size()),
                     .compute_ms = median(compute),
                     .optimizer_ms = median(optimizer),
                     .delay_ms = mean(delay)});
  }
  // The lower one of an even number, so that of two workers the slower one may be slow.
  const auto lower_median = [&](double WorkerPace::*of) {
    std::vector<double> values;
    for (const WorkerPace& worker : paces) values.push_back(worker.*of);
    std::ranges::sort(values);
    return values.empty() ? 0 : values[(values.size() - 1) / 2];
  };
  const double usual = lower_median(&WorkerPace::compute_ms), delay = lower_median(&WorkerPace::delay_ms);
  for (WorkerPace& worker : paces) {
    worker.is_slow = worker.compute_ms > kSlow * usual || worker.delay_ms > kMuchDelayed * delay;
  }
  return paces;
}

}  // namespace

const char* name_of(PartKind kind) {
  switch (kind) {
    case PartKind::kData:
      return "data";
    case PartKind::kStraggler:
      return "straggler";
    case PartKind::kImbalance:
      return "imbalance";
    case PartKind::kDelays:
      return "delays asked for";
    case PartKind::kCores:
      return "oversubscribed cores";
    case PartKind::kLink:
      return "thin link";
    case PartKind::kIncast:
      return "incast";
    case PartKind::kHotShard:
      return "hot shard";
    case PartKind::kSlowServer:
      return "slow server";
    case PartKind::kServers:
      return "servers' work";
    case PartKind::kDelay:
      return "messages' delay";
    case PartKind::kExchange:
      return "other communication";
    case PartKind::kCodec:
      return "codec";
    case PartKind::kOptimizer:
      return "optimizer";
    case PartKind::kDropped:
      return "dropped gradients";
    case PartKind::kOther:
      return "other";
  }
  return "";
}

double Waterfall::part(PartKind kind) const {
  const auto found = std::ranges::find(parts, kind, &Part::kind);
  return found == parts.end() ? 0 : found->ms;
}

std::optional<Waterfall> make_waterfall(std::span<const StepRow> rows, const RunPace& pace) {
  const WindowOfSteps window = window_of(rows, pace);
  if (window.rows.empty()) return std::nullopt;
  Sums sums = sums_of(window.rows, LateWorkers(rows, pace), pace);
  const auto steps = static_cast<double>(window.rows.size());

  Waterfall waterfall{.workers = workers_in(window, pace), .batch_size = sums.samples / steps};
  waterfall.steps = static_cast<std::int64_t>(window.rows.size());
  waterfall.has_window = window.is_shared;
  waterfall.core_waits_recorded =
      std::ranges::any_of(window.rows, [](const StepRow* row) { return row->core_wait.has_value(); });
  waterfall.of_workers = paces_of(window.rows, pace);
  const auto own_ms = [&](const WorkerPace& worker) {
    return worker.compute_ms + (pace.optimizer_is_local ? worker.optimizer_ms : 0);
  };
  const WorkerPace& fastest = *std::ranges::min_element(waterfall.of_workers, {}, own_ms);
  waterfall.fastest = fastest.worker;
  waterfall.ideal_ms = own_ms(fastest);
  waterfall.exchange_ms = sums.exchange / steps;
  waterfall.communication_ms = sums.communication / steps;

  // Slowness and delays, a worker's own and waits for it, are the straggler's if it is slow.
  double slow = 0, uneven = 0, uneven_waits = 0, delays = 0, waits = 0;
  for (const double ms : sums.waits_for) waits += ms;
  for (WorkerPace& worker : waterfall.of_workers) {
    const auto rank = static_cast<std::size_t>(worker.worker);
    const double excess = sums.own_compute[rank] - static_cast<double>(worker.steps) * fastest.compute_ms;
    const double of_others =
        std::exchange(sums.waits_for_compute[rank], 0) + std::exchange(sums.waits_for_straggle[rank], 0);
    (worker.is_slow ? slow : uneven) += excess + of_others;
    (worker.is_slow ? slow : delays) += sums.own_straggle[rank];
    if (!worker.is_slow) uneven_waits += of_others;
    worker.costs_ms = (excess + sums.own_straggle[rank] + of_others) / steps;
    worker.last_of_steps = waits > 0 ? sums.waits_for[rank] / waits : 0;
  }
  // For workers without a step in the window.
  for (const auto* left : {&sums.waits_for_compute, &sums.waits_for_straggle}) {
    for (const double ms : *left) {
      uneven += ms;
      uneven_waits += ms;
    }
  }
  waterfall.uneven_waits_ms = uneven_waits / steps;
  waterfall.uneven_waits_seldom_ms = waits_in(window.rows, pace, kSeldom);
  std::vector<double> alone = sums.alone;
  for (double& ms : alone) ms /= steps;
  waterfall.exchange = divide_exchange({.exposed_ms = waterfall.exchange_ms,
                                        .communication_ms = waterfall.communication_ms,
                                        .bytes_out = sums.bytes_out / steps,
                                        .bytes_in = sums.bytes_in / steps,
                                        .rounds = static_cast<double>(rows.size()) / pace.workers,
                                        .step_ms = sums.total / steps,
                                        .alone_ms = std::move(alone)},
                                       pace);
  const ExchangeParts& exchange = waterfall.exchange;
  // Where the link's part is known, what else ranks wait for is that others encode and decode.
  const bool others_code = pace.compresses && pace.link && pace.servers == 0;
  const double step = sums.total / steps, dropped = std::clamp(sums.dropped / steps, 0.0, 0.999);
  waterfall.measured_ms = step / (1 - dropped);
  const auto ms_of = [&](PartKind kind) {
    switch (kind) {
      case PartKind::kData:
        return (sums.data + sums.wait_for_data) / steps;
      case PartKind::kStraggler:
        return slow / steps;
      case PartKind::kImbalance:
        return uneven / steps;
      case PartKind::kDelays:
        return delays / steps;
      case PartKind::kCores:
        return (sums.cores + sums.wait_for_cores) / steps + exchange.cores;
      case PartKind::kCodec:
        return sums.codec / steps + (others_code ? exchange.unexplained : 0);
      case PartKind::kHotShard:
        return exchange.hot_shard;
      case PartKind::kSlowServer:
        return exchange.slow_server;
      case PartKind::kLink:
        return exchange.link;
      case PartKind::kIncast:
        return exchange.incast;
      case PartKind::kServers:
        return exchange.servers;
      case PartKind::kDelay:
        return exchange.delay;
      case PartKind::kExchange:
        return others_code ? 0 : exchange.unexplained;
      case PartKind::kOptimizer:
        return sums.optimizer / steps - (pace.optimizer_is_local ? fastest.optimizer_ms : 0);
      case PartKind::kDropped:
        return waterfall.measured_ms - step;
      case PartKind::kOther:
        return sums.other / steps;
    }
    return 0.0;
  };
  for (const PartKind kind : kPartKinds) waterfall.parts.push_back({kind, ms_of(kind)});
  return waterfall;
}

}  // namespace syncopate::experiments
