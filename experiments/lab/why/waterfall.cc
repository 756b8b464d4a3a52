#include "experiments/lab/why/waterfall.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "experiments/lab/report/statistics.h"
#include "experiments/lab/why/late_workers.h"
#include "worker/pipeline/pipeline_time.h"

namespace syncopate::experiments {
namespace {

// A worker whose median computing is that many times that of most workers, and which takes longer than their median in
// that part of its steps, is slow: samples of unequal cost raise a median by chance, but seldom most steps.
constexpr double kSlow = 1.25;
constexpr double kMostSteps = 0.8;
// A worker whose steps' computing deviates by that part of their mean, in the mean, computes for unequal times.
constexpr double kVaried = 0.1;
// The same of its mean delay by --straggler. Drawn delays of all workers have means that differ, but not as much.
constexpr double kMuchDelayed = 3;

struct WindowOfSteps {
  std::vector<StepOfWorker> steps;
  bool is_shared = true;  // all workers train in it; false: all steps
  TimeWindow time;
};

// Keeps as many steps of each stage of a pipeline that has any, the first ones.
void keep_as_many_of_stages(const PacedPipeline& pipeline, std::vector<StepOfWorker>& steps) {
  std::map<int, std::size_t> counts;
  for (const StepOfWorker& each : steps) ++counts[each.worker];
  std::map<int, std::size_t> fewest;  // by pipeline
  for (const auto& [worker, count] : counts) {
    std::size_t& its = fewest.try_emplace(worker % pipeline.workers_a_stage, count).first->second;
    its = std::min(its, count);
  }
  counts.clear();
  std::erase_if(steps, [&](const StepOfWorker& each) {
    return ++counts[each.worker] > fewest.at(each.worker % pipeline.workers_a_stage);
  });
}

WindowOfSteps window_of(const RecordedSteps& recorded, const RunPace& pace) {
  std::vector<WorkerSteps> workers;
  for (int worker = 0; worker < pace.workers; ++worker) {
    const auto its = recorded.of_workers.find(worker);
    workers.push_back({.rank = worker, .lost = pace.lost.contains(worker), .steps = {}});
    if (its != recorded.of_workers.end()) workers.back().steps = its->second;
  }
  if (const std::optional<TimeWindow> shared = steady_window(workers, pace.warmup_steps)) {
    WindowOfSteps window{.steps = steps_within(workers, *shared, pace.warmup_steps), .time = *shared};
    // Where the window ends between the ends of two stages' steps, means would have more of the one than of the other.
    if (pace.pipeline) keep_as_many_of_stages(*pace.pipeline, window.steps);
    return window;
  }
  WindowOfSteps window{.steps = all_steps(workers), .is_shared = false, .time = {TimePoint::max(), TimePoint::min()}};
  for (const StepOfWorker& each : window.steps) {
    window.time.begin = std::min(window.time.begin, each.step->end - each.step->total);
    window.time.end = std::max(window.time.end, each.step->end);
  }
  return window;
}

// How many workers trained, in the mean over the window: each counts with the part of it that its steps take. The
// step that the window's end cuts is not among them.
double workers_in(const WindowOfSteps& window, const RunPace& pace) {
  const double length = milliseconds(window.time.end - window.time.begin);
  std::map<int, std::pair<double, double>> of_workers;  // sum and number of their steps
  for (const auto& [worker, step] : window.steps) {
    of_workers[worker].first += milliseconds(step->total);
    of_workers[worker].second += 1;
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
  double copies = 0, launches = 0, idle = 0;
  DeviceFigures device;
  double total = 0, communication = 0, samples = 0;
  double wait_for_data = 0, wait_for_cores = 0;
  std::vector<double> own_compute, own_straggle;  // by worker
  std::vector<double> own_bytes_out, own_bytes_in;
  std::vector<double> waits_for_compute, waits_for_straggle;  // by the worker waited for
  std::vector<double> waits_for;
  std::vector<double> alone;  // by server
};

// The server whose responses ended the step's wait was the only one waited for, for so long.
void add_alone(const StepRecord& step, double ms, const RunPace& pace, Sums& sums) {
  const int shard = step.sync.last_shard;
  if (shard < 0 || shard >= pace.group.shards() || pace.servers == 0) return;
  sums.alone[static_cast<std::size_t>(pace.group.server_of_shard(shard))] += ms;
}

void add_wait(const StepOfWorker& waiting, const LateWorkers& late, const RunPace& pace, Sums& sums) {
  const StepRecord& step = *waiting.step;
  const WaitForWorker wait = late.wait_of(waiting);
  const double communication = milliseconds(step.sync.communication);
  double exchange = milliseconds(step.sync.exposed_wait) - wait.ms, under_way = std::max(0.0, communication - wait.ms);
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
      add_alone(*wait.before, std::min(part(Lateness::kExchange), milliseconds(wait.before->sync.last_shard_alone)),
                pace, sums);
    }
  }
  // Its own thread may have been ready before it had a core to go on with, and so may others' in the same exchange.
  const double without_core =
      std::min(woken_late_ms(step) + late.others_without_core_ms(step), std::max(0.0, exchange));
  sums.cores += without_core;
  exchange -= without_core;
  // What is not within backward goes on beside the wire, or in turns with it.
  const double codec = std::max(0.0, milliseconds(step.sync.codec - step.sync.backward_codec));
  const double exposed_codec = communication > 0 ? exchange * std::min(1.0, codec / communication) : 0;
  sums.codec += milliseconds(step.sync.backward_codec) + exposed_codec;
  const double copy = milliseconds(step.sync.copy);
  const double exposed_copies = copy > 0 ? (exchange - exposed_codec) * copy / (copy + under_way) : 0;
  sums.copies += exposed_copies;
  sums.exchange += exchange - exposed_codec - exposed_copies;
  sums.communication += std::max(under_way, exchange);  // nobody waits for an exchange that is not under way
}

struct BytesOfWorker {
  double out = 0, in = 0;
};

// Returns what a worker sends and receives in a mean step; in a pipeline one of the stage that has most, whose link is
// what the others wait for.
BytesOfWorker bytes_of_worker(const Sums& sums, const std::vector<WorkerPace>& of_workers, const RunPace& pace) {
  std::vector<BytesOfWorker> stages(pace.pipeline ? static_cast<std::size_t>(pace.pipeline->stages) : 1);
  std::vector<double> steps(stages.size());
  for (const WorkerPace& worker : of_workers) {
    const auto rank = static_cast<std::size_t>(worker.worker);
    const std::size_t stage = pace.pipeline ? rank / static_cast<std::size_t>(pace.pipeline->workers_a_stage) : 0;
    stages[stage].out += sums.own_bytes_out[rank];
    stages[stage].in += sums.own_bytes_in[rank];
    steps[stage] += static_cast<double>(worker.steps);
  }
  BytesOfWorker most;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const double count = std::max(1.0, steps[stage]);
    const BytesOfWorker mean{stages[stage].out / count, stages[stage].in / count};
    if (std::max(mean.out, mean.in) > std::max(most.out, most.in)) most = mean;
  }
  return most;
}

void add_device(const StepRecord& step, DeviceFigures& device) {
  device.forward_ms += milliseconds(step.forward);
  device.backward_ms += milliseconds(step.backward);
  device.optimizer_ms += milliseconds(step.sync.optimizer);
  device.launch_ms += milliseconds(step.launch);
  device.copy_ms += milliseconds(step.sync.copy);
}

Sums sums_of(const std::vector<StepOfWorker>& steps, const LateWorkers& late, const RunPace& pace) {
  Sums sums;
  const auto workers = static_cast<std::size_t>(pace.workers);
  for (auto* by_worker : {&sums.own_compute, &sums.own_straggle, &sums.own_bytes_out, &sums.own_bytes_in,
                          &sums.waits_for_compute, &sums.waits_for_straggle, &sums.waits_for}) {
    by_worker->assign(workers, 0);
  }
  sums.alone.assign(static_cast<std::size_t>(pace.servers), 0);
  for (const StepOfWorker& each : steps) {
    const StepRecord& step = *each.step;
    const SyncStats& sync = step.sync;
    const auto worker = static_cast<std::size_t>(each.worker);
    sums.total += milliseconds(step.total);
    sums.data += milliseconds(step.data);
    sums.own_straggle[worker] += milliseconds(step.straggle);
    sums.cores += computing_without_core_ms(step);
    sums.samples += static_cast<double>(step.samples);
    sums.own_compute[worker] += computed_ms(step);
    sums.optimizer += milliseconds(sync.optimizer);
    sums.dropped += sync.dropped;
    sums.own_bytes_out[worker] += static_cast<double>(sync.bytes_out);
    sums.own_bytes_in[worker] += static_cast<double>(sync.bytes_in);
    const double rest = milliseconds(step.total - parts_of(step));
    sums.other += rest;
    if (pace.on_device) add_device(step, sums.device);
    // A step that is one piece is given before the device can begin with it; bit by bit it is given while it works.
    if (pace.captures_steps) sums.launches += std::clamp(rest, 0.0, milliseconds(step.launch));
    add_alone(step, milliseconds(sync.last_shard_alone), pace, sums);
    add_wait(each, late, pace, sums);
  }
  if (pace.on_device) {
    // What steps have beyond their parts is what a device had nothing to do.
    const double nothing_to_do = std::max(0.0, sums.other);
    sums.launches = std::min(sums.launches, nothing_to_do);
    sums.idle = nothing_to_do - sums.launches;
    sums.other -= nothing_to_do;
  }
  return sums;
}

// What workers would wait for each other, of the mean step, if they met every so many of these steps: for the one that
// takes longest over all of them. None where there are fewer.
std::optional<double> waits_in(const std::vector<StepOfWorker>& made, const RunPace& pace, std::int64_t steps) {
  std::map<std::int64_t, std::map<int, std::pair<double, std::int64_t>>> meetings;  // by worker: the time of how many
  for (const auto& [worker, step] : made) {
    auto& [ms, count] = meetings[step->step / steps][worker];
    ms += milliseconds(step->data + step->forward + step->backward + step->straggle);
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

double mean_deviation(const std::vector<double>& values) {
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) sum += std::abs(value - middle);
  return sum / static_cast<double>(values.size());
}

std::vector<WorkerPace> paces_of(const std::vector<StepOfWorker>& steps, const RunPace& pace) {
  std::vector<WorkerPace> paces;
  std::vector<std::vector<double>> computing;  // of each of them, step by step
  for (int worker = 0; worker < pace.workers; ++worker) {
    std::vector<double> compute, optimizer, delay;
    for (const auto& [its_worker, step] : steps) {
      if (its_worker != worker) continue;
      compute.push_back(computed_ms(*step));
      optimizer.push_back(milliseconds(step->sync.optimizer));
      delay.push_back(milliseconds(step->straggle));
    }
    if (compute.empty()) continue;
    paces.push_back({.worker = worker,
                     .steps = static_cast<std::int64_t>(compute.size()),
                     .compute_ms = median(compute),
                     .optimizer_ms = median(optimizer),
                     .delay_ms = mean(delay),
                     .varies = mean_deviation(compute) > kVaried * mean(compute)});
    computing.push_back(std::move(compute));
  }
  // The lower one of an even number, so that of two workers the slower one may be slow.
  const auto lower_median = [&](double WorkerPace::*of) {
    std::vector<double> values;
    for (const WorkerPace& worker : paces) values.push_back(worker.*of);
    std::ranges::sort(values);
    return values.empty() ? 0 : values[(values.size() - 1) / 2];
  };
  const double usual = lower_median(&WorkerPace::compute_ms), delay = lower_median(&WorkerPace::delay_ms);
  for (std::size_t i = 0; i < paces.size(); ++i) {
    WorkerPace& worker = paces[i];
    const auto longer = std::ranges::count_if(computing[i], [&](double ms) { return ms > usual; });
    const bool mostly = static_cast<double>(longer) >= kMostSteps * static_cast<double>(worker.steps);
    worker.is_slow =
        !pace.pipeline && ((worker.compute_ms > kSlow * usual && mostly) || worker.delay_ms > kMuchDelayed * delay);
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
    case PartKind::kBubble:
      return "pipeline bubble";
    case PartKind::kMessages:
      return "stages' messages";
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
    case PartKind::kCopies:
      return "copies";
    case PartKind::kCodec:
      return "codec";
    case PartKind::kOptimizer:
      return "optimizer";
    case PartKind::kDropped:
      return "dropped gradients";
    case PartKind::kLaunches:
      return "launches";
    case PartKind::kIdle:
      return "idle GPU";
    case PartKind::kOther:
      return "other";
  }
  return "";
}

double Waterfall::part(PartKind kind) const {
  const auto found = std::ranges::find(parts, kind, &Part::kind);
  return found == parts.end() ? 0 : found->ms;
}

std::vector<double> stages_ms(const std::vector<WorkerPace>& of_workers, const PacedPipeline& pipeline) {
  std::vector<double> sums(static_cast<std::size_t>(pipeline.stages)), counts(sums.size());
  for (const WorkerPace& worker : of_workers) {
    const auto stage = static_cast<std::size_t>(worker.worker / pipeline.workers_a_stage);
    sums[stage] += worker.compute_ms;
    counts[stage] += 1;
  }
  for (std::size_t stage = 0; stage < sums.size(); ++stage) sums[stage] /= std::max(1.0, counts[stage]);
  return sums;
}

double waits_of_stages_ms(const std::vector<WorkerPace>& of_workers, const PacedPipeline& pipeline) {
  const std::vector<double> stages = stages_ms(of_workers, pipeline);
  std::vector<worker::StageTimes> chunks;
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk) {
    for (const double ms : stages) {
      const double pass = ms / (pipeline.microbatches * pipeline.chunks);
      const std::size_t number = chunks.size();
      const double to_next = number < pipeline.to_next_ms.size() ? pipeline.to_next_ms[number] : 0;
      chunks.push_back({.forward = pass / 3, .backward = pass * 2 / 3, .weights = pass / 3, .to_next = to_next});
    }
  }
  const worker::PipelinePlace place{.schedule = pipeline.schedule,
                                    .stages = pipeline.stages,
                                    .microbatches = pipeline.microbatches,
                                    .chunks = pipeline.chunks};
  const double mean = std::accumulate(stages.begin(), stages.end(), 0.0) / pipeline.stages;
  if (stashes_weights(place.schedule)) return worker::pipeline_period(place, chunks, pipeline.delay_ms) - mean;
  return std::ranges::max(worker::pipeline_ends(place, chunks, pipeline.delay_ms)) - mean;
}

double bubble_ms(const std::vector<WorkerPace>& of_workers, const PacedPipeline& pipeline) {
  PacedPipeline without_messages = pipeline;
  without_messages.to_next_ms.clear();
  without_messages.delay_ms = 0;
  return waits_of_stages_ms(of_workers, without_messages);
}

std::optional<Waterfall> make_waterfall(const RecordedSteps& recorded, const RunPace& pace) {
  const WindowOfSteps window = window_of(recorded, pace);
  if (window.steps.empty()) return std::nullopt;
  Sums sums = sums_of(window.steps, LateWorkers(recorded, pace), pace);
  const auto steps = static_cast<double>(window.steps.size());

  // A pipeline's last stage alone has samples, and not as many steps in the window as the others.
  Waterfall waterfall{.workers = workers_in(window, pace),
                      .batch_size = pace.pipeline ? pace.batch_size : sums.samples / steps};
  waterfall.steps = static_cast<std::int64_t>(window.steps.size());
  waterfall.has_window = window.is_shared;
  waterfall.core_waits_recorded =
      std::ranges::any_of(window.steps, [](const StepOfWorker& each) { return each.step->core_wait.has_value(); });
  waterfall.of_workers = paces_of(window.steps, pace);
  const auto own_ms = [&](const WorkerPace& worker) {
    return worker.compute_ms + (pace.optimizer_is_local ? worker.optimizer_ms : 0);
  };
  const WorkerPace& fastest = *std::ranges::min_element(waterfall.of_workers, {}, own_ms);
  waterfall.fastest = fastest.worker;
  const auto ideal_of = [&](const auto& ms) {
    if (!pace.pipeline) return ms(fastest);
    double sum = 0;
    for (const WorkerPace& worker : waterfall.of_workers) sum += ms(worker);
    return sum / static_cast<double>(waterfall.of_workers.size());
  };
  const double ideal_compute_ms = ideal_of([](const WorkerPace& worker) { return worker.compute_ms; });
  waterfall.ideal_ms = ideal_of(own_ms);
  const double waits_for_neighbours = sums.exchange / steps;
  const double bubble =
      pace.pipeline ? std::min(waits_for_neighbours, bubble_ms(waterfall.of_workers, *pace.pipeline)) : 0;
  const double messages = pace.pipeline ? std::clamp(waits_of_stages_ms(waterfall.of_workers, *pace.pipeline) - bubble,
                                                     0.0, waits_for_neighbours - bubble)
                                        : 0;
  waterfall.exchange_ms = waits_for_neighbours - bubble - messages;
  waterfall.communication_ms = sums.communication / steps - bubble - messages;

  // Slowness and delays, a worker's own and waits for it, are the straggler's if it is slow.
  double slow = 0, uneven = 0, uneven_waits = 0, delays = 0, waits = 0;
  for (const double ms : sums.waits_for) waits += ms;
  for (WorkerPace& worker : waterfall.of_workers) {
    const auto rank = static_cast<std::size_t>(worker.worker);
    const double excess = sums.own_compute[rank] - static_cast<double>(worker.steps) * ideal_compute_ms;
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
  waterfall.uneven_waits_seldom_ms = waits_in(window.steps, pace, kSeldom);
  std::vector<double> alone = sums.alone;
  for (double& ms : alone) ms /= steps;
  const BytesOfWorker bytes = bytes_of_worker(sums, waterfall.of_workers, pace);
  waterfall.exchange = divide_exchange({.exposed_ms = waterfall.exchange_ms,
                                        .communication_ms = waterfall.communication_ms,
                                        .bytes_out = bytes.out,
                                        .bytes_in = bytes.in,
                                        .rounds = static_cast<double>(recorded.count()) / pace.workers,
                                        .step_ms = sums.total / steps,
                                        .alone_ms = std::move(alone)},
                                       pace);
  for (double DeviceFigures::*const figure :
       {&DeviceFigures::forward_ms, &DeviceFigures::backward_ms, &DeviceFigures::optimizer_ms,
        &DeviceFigures::launch_ms, &DeviceFigures::copy_ms}) {
    waterfall.device.*figure = sums.device.*figure / steps;
  }
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
      case PartKind::kBubble:
        return bubble;
      case PartKind::kMessages:
        return messages;
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
      case PartKind::kCopies:
        return sums.copies / steps;
      case PartKind::kOptimizer:
        return sums.optimizer / steps - (pace.optimizer_is_local ? fastest.optimizer_ms : 0);
      case PartKind::kDropped:
        return waterfall.measured_ms - step;
      case PartKind::kLaunches:
        return sums.launches / steps;
      case PartKind::kIdle:
        return sums.idle / steps;
      case PartKind::kOther:
        return sums.other / steps;
    }
    return 0.0;
  };
  for (const PartKind kind : kPartKinds) waterfall.parts.push_back({kind, ms_of(kind)});
  return waterfall;
}

}  // namespace syncopate::experiments
