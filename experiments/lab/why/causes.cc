#include "experiments/lab/why/causes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace syncopate::experiments {
namespace {

// Batches of one worker that are small whatever the model, and the least that is usual.
constexpr double kTinyBatch = 4;
constexpr double kUsualBatch = 32;

constexpr const char* kWithoutPart = "the waterfall without this part";

// The part's name, with an article where a person would say one.
std::string phrase_of(PartKind kind) {
  const std::string name = name_of(kind);
  switch (kind) {
    case PartKind::kStraggler:
    case PartKind::kLink:
    case PartKind::kHotShard:
    case PartKind::kSlowServer:
      return "a " + name;
    case PartKind::kData:
    case PartKind::kBubble:
    case PartKind::kServers:
    case PartKind::kCodec:
    case PartKind::kOptimizer:
      return "the " + name;
    case PartKind::kCopies:
      return "copies between GPU and host";
    case PartKind::kLaunches:
      return "giving the GPU its work";
    case PartKind::kIdle:
      return "an " + name;
    default:
      return name;
  }
}

struct Remedy {
  std::string change;
  std::optional<double> ms_gained = {};  // of the mean step; none: this run does not tell
  std::string by = kWithoutPart;
};

double exchange_of(const Waterfall& waterfall) {
  double ms = 0;
  for (const PartKind kind : {PartKind::kLink, PartKind::kIncast, PartKind::kHotShard, PartKind::kSlowServer,
                              PartKind::kServers, PartKind::kDelay, PartKind::kExchange}) {
    ms += waterfall.part(kind);
  }
  return ms;
}

Remedy more_servers(const Waterfall& waterfall, const RunPace& pace, double part_ms) {
  Remedy remedy{.change = pace.has_colocated_servers
                              ? fmt::format("give servers hosts of their own (--servers={})", pace.servers)
                              : fmt::format("take {} servers (--servers={})", 2 * pace.servers, 2 * pace.servers),
                .ms_gained = part_ms / 2,
                .by = "half of this part"};
  if (pace.exchange_left_by_servers) {
    remedy.ms_gained = exchange_of(waterfall) * (1 - *pace.exchange_left_by_servers);
    remedy.by = "the measured exchange, less by as much as in the closed form of synchronous servers";
  } else if (pace.exchanges_alone() && pace.link && !pace.has_colocated_servers) {
    // Servers are full, so that the step goes with what they have to do, down to what the workers' links need.
    const double rest = waterfall.measured_ms - waterfall.exchange_ms;
    const double left = std::max(waterfall.measured_ms / 2 - rest, waterfall.exchange.own_link_exposed_ms);
    remedy.ms_gained = std::clamp(waterfall.exchange_ms - left, 0.0, waterfall.exchange_ms);
    remedy.by = "servers that have half as much to do each, beside the workers' own links";
  }
  return remedy;
}

// Whether the run would take the flag, "--compress=int8" or "--sync-every".
bool accepts(const RunPace& pace, const std::string& flag) {
  return !pace.refused.contains(flag.substr(2, flag.find('=') - 2));
}

// Returns those of the flags that bring a change about in this run, behind it; nothing for a program that has none of
// them.
std::string by_flags(const RunPace& pace, std::vector<std::string> flags) {
  std::erase_if(flags, [&](const std::string& flag) { return !accepts(pace, flag); });
  return pace.is_own_program || flags.empty() ? "" : fmt::format(" ({})", fmt::join(flags, ", "));
}

// The same of what a program of the person's own takes, too.
std::string where_accepted(const RunPace& pace, const std::string& flag, const std::string& text) {
  return accepts(pace, flag) ? text : "";
}

Remedy wider_links(const Waterfall& waterfall, const RunPace& pace) {
  Remedy remedy{.change = where_accepted(pace, "--compress", "send half as much (--compress=int8 a quarter), or ") +
                          "take links of twice the rate"};
  const double incast = waterfall.part(PartKind::kIncast);
  if (pace.exchange_left_by_link) {
    remedy.ms_gained = exchange_of(waterfall) * (1 - *pace.exchange_left_by_link);
    remedy.by = "the measured exchange, less by as much as in the closed form";
  } else {
    remedy.ms_gained = (waterfall.part(PartKind::kLink) + incast) / 2;
    remedy.by = incast > 0 ? "half of this part and of incast" : "half of this part";
  }
  return remedy;
}

// A cut into more microbatches leaves what stages wait for the slowest of them, however many there are.
constexpr double kLeastGain = 0.1;  // of what stages wait

// Another way through the same stages, and what brings it about.
struct Reordered {
  PacedPipeline pipeline;
  std::string change;
};

std::vector<Reordered> ways_through(const RunPace& pace) {
  std::vector<Reordered> ways;
  const auto add = [&](int microbatches) {
    PacedPipeline cut = *pace.pipeline;
    cut.microbatches = microbatches;
    for (double& ms : cut.to_next_ms) ms *= static_cast<double>(pace.pipeline->microbatches) / microbatches;
    ways.push_back({std::move(cut), fmt::format("cut the batch into {} microbatch{} (--microbatches={})", microbatches,
                                                microbatches == 1 ? "" : "es", microbatches)});
  };
  const PacedPipeline& now = *pace.pipeline;
  if (worker::stashes_weights(now.schedule)) return ways;  // it has no microbatches
  if (accepts(pace, "--microbatches")) add(2 * now.microbatches);
  const int half = now.microbatches / 2;
  const bool may_halve = now.microbatches % 2 == 0 && (now.chunks == 1 || half % now.stages == 0);
  if (may_halve) add(half);
  if (now.schedule == worker::PipelineSchedule::kOneForwardOneBackward) {
    ways.push_back({now, "let all microbatches go forward first (--pipeline-schedule=gpipe)"});
    ways.back().pipeline.schedule = worker::PipelineSchedule::kGpipe;
  }
  return ways;
}

Remedy fewer_waits_of_stages(const Waterfall& waterfall, const RunPace& pace) {
  const double now = waits_of_stages_ms(waterfall.of_workers, *pace.pipeline);
  double most = kLeastGain * now;
  Remedy remedy{accepts(pace, "--microbatches") || worker::stashes_weights(pace.pipeline->schedule)
                    ? "take fewer stages (--pipeline), or layers that are alike"
                    : "take fewer stages (--pipeline), or larger batches"};
  for (const Reordered& way : ways_through(pace)) {
    const double gained = now - waits_of_stages_ms(waterfall.of_workers, way.pipeline);
    if (gained < most) continue;
    most = gained;
    remedy = {way.change, gained, "the schedule of these stages, with their messages where links are known"};
  }
  return remedy;
}

int costliest_worker(const Waterfall& waterfall) {
  return std::ranges::max_element(waterfall.of_workers, {}, &WorkerPace::costs_ms)->worker;
}

std::string cores_remedy(const RunPace& pace) {
  const bool fits = pace.machine && pace.processes <= pace.machine->cores;
  if (!fits) return "run as many processes as there are cores, or on more cores";
  return pace.machine->others.value_or(0) >= kNamedPart ? "leave the cores to the run: others use them, too"
                                                        : "leave a core to what the run does besides computing";
}

std::string copies_remedy(const RunPace& pace) {
  return pace.servers > 0
             ? "sum gradients from GPU to GPU, where each worker has one (--mode=allreduce, which takes NCCL)"
             : "sum gradients from GPU to GPU, where each worker has one (--collective=nccl)";
}

// What would take the part away, or make it smaller; none for parts that nothing is known of.
std::optional<Remedy> remedy_of(PartKind kind, const Waterfall& waterfall, const RunPace& pace) {
  const double ms = waterfall.part(kind);
  switch (kind) {
    case PartKind::kData:
      return Remedy{
          pace.is_own_program
              ? "prepare batches faster: a DataLoader with processes of its own (num_workers), or larger parts"
              : "prepare batches faster: faster storage, or more cores for the threads that read",
          ms};
    case PartKind::kStraggler:
      return Remedy{fmt::format("find out what slows worker {}, or leave it out", costliest_worker(waterfall)), ms};
    case PartKind::kImbalance:
      if (waterfall.uneven_waits_ms < ms / 2) return Remedy{"find out what makes some steps longer than others", ms};
      if (waterfall.uneven_waits_seldom_ms && !pace.is_own_program && pace.servers == 0 && pace.meets_every == 1 &&
          accepts(pace, "--sync-every")) {
        const double waits = std::max(0.0, waterfall.uneven_waits_ms - *waterfall.uneven_waits_seldom_ms);
        return Remedy{
            fmt::format("let workers average their weights every {} steps (--sync-every={})", kSeldom, kSeldom),
            waits + exchange_of(waterfall) * (1 - 1.0 / kSeldom),
            "the waits that these steps would make then, and that part of the exchange"};
      }
      return Remedy{
          "let workers wait for each other less" +
              (pace.is_own_program ? " (--mode=ps --consistency=bounded:k)"
                                   : by_flags(pace, {"--consistency=bounded:k", "--backup-workers", "--sync-every"})),
          waterfall.uneven_waits_ms, "nobody waits for another worker, and steps stay as uneven as they are"};
    case PartKind::kCores:
      return Remedy{cores_remedy(pace), ms};
    case PartKind::kBubble:
    case PartKind::kMessages:
      return fewer_waits_of_stages(waterfall, pace);
    case PartKind::kLink:
      return wider_links(waterfall, pace);
    case PartKind::kIncast:
      return more_servers(waterfall, pace, ms);
    case PartKind::kHotShard:
      return Remedy{"spread the bytes evenly" + where_accepted(pace, "--sharding", " (--sharding=balanced)"), ms};
    case PartKind::kSlowServer:
      return Remedy{fmt::format("find out what slows server {}, or move it to another host",
                                waterfall.exchange.slowest_server.value_or(0)),
                    ms};
    case PartKind::kServers: {
      if (pace.compresses)
        return Remedy{"send without a codec (--compress=none), which servers undo, or take a cheaper one"};
      Remedy remedy = more_servers(waterfall, pace, ms);
      if (!pace.exchanges_alone()) remedy = {.change = remedy.change, .ms_gained = ms / 2, .by = "half of this part"};
      if (!pace.is_own_program && accepts(pace, "--shards-per-server")) {
        remedy.change += ", or threads (--shards-per-server)";
      }
      return remedy;
    }
    case PartKind::kDelay:
      return Remedy{"make larger steps" + by_flags(pace, {"--batch-size", "--sync-every"}), exchange_of(waterfall) / 2,
                    "half of the exchange, as in steps of twice the samples"};
    case PartKind::kCodec:
      return Remedy{"take a faster codec, or none (--compress)", ms};
    case PartKind::kOptimizer:
      return Remedy{"take a cheaper update rule" + by_flags(pace, {"--optimizer"}), ms};
    case PartKind::kDropped:
      return Remedy{"compare with fewer backup workers (--vary=backup-workers=0,1): what is not dropped is waited for"};
    case PartKind::kExchange:
      if (may_wait_for_computing(waterfall, pace)) return Remedy{pace.to_wait_less};
      return Remedy{
          "make larger steps" +
              (pace.is_own_program ? ", or send fewer bytes (--compress)"
               : pace.oversubscription
                   ? by_flags(pace, {"--batch-size"}) + ", or take racks with wider lines (--fabric=racks:R)"
               : pace.shares_links
                   ? by_flags(pace, {"--batch-size"}) + ", or measure with a host for each process (no --hosts)"
                   : by_flags(pace, {"--batch-size"}) +
                         where_accepted(pace, "--shape", ", or measure with a known link (--shape)")),
          ms / 2, "half of this part"};
    case PartKind::kCopies:
      return Remedy{copies_remedy(pace), ms};
    case PartKind::kLaunches:
      return Remedy{"make larger steps" + by_flags(pace, {"--batch-size"}), ms};
    case PartKind::kIdle:
      return Remedy{"find out what the host does between steps", ms};
    case PartKind::kDelays:
    case PartKind::kOther:
      return std::nullopt;
  }
  return std::nullopt;
}

// A step is too small where its exchange takes longer than its computing, and a batch of usual size would change that;
// or where the batch is small whatever the model.
std::optional<Cause> tiny_batch(const Waterfall& waterfall, const RunPace& pace) {
  if (pace.pipeline || may_wait_for_computing(waterfall, pace)) return std::nullopt;
  const double exchange = exchange_of(waterfall);
  const double batch = pace.batch_size;
  const bool suffices = exchange * batch <= waterfall.ideal_ms * kUsualBatch;
  if (exchange <= waterfall.ideal_ms || batch >= kUsualBatch || (batch > kTinyBatch && !suffices)) return std::nullopt;
  double larger = batch * 2;
  while (larger < batch * exchange / waterfall.ideal_ms && larger < kUsualBatch) larger *= 2;
  Cause cause{.name = "tiny batch", .phrase = "a tiny batch", .ms = exchange};
  cause.evidence = fmt::format("{:g} sample{} a worker compute for {:.3g} ms, and their exchange takes {:.3g} ms",
                               batch, batch == 1 ? "" : "s", waterfall.ideal_ms, exchange);
  cause.change =
      fmt::format("take batches of {:g}{}", larger, by_flags(pace, {fmt::format("--batch-size={:g}", larger)}));
  const double step = waterfall.measured_ms + waterfall.ideal_ms * (larger / batch - 1);
  cause.predicted_rate = waterfall.rate_of(step) * larger / batch;
  cause.by = "the same exchange, and computing in proportion to the batch";
  return cause;
}

}  // namespace

bool may_wait_for_computing(const Waterfall& waterfall, const RunPace& pace) {
  return !pace.to_wait_less.empty() && std::ranges::any_of(waterfall.of_workers, &WorkerPace::varies);
}

std::vector<Cause> causes_of(const Waterfall& waterfall, const RunPace& pace) {
  std::vector<Cause> causes;
  const double least = kNamedPart * waterfall.measured_ms;
  // First, since it explains every part of its exchange.
  if (std::optional<Cause> tiny = tiny_batch(waterfall, pace); tiny && tiny->ms >= least) {
    causes.push_back(std::move(*tiny));
  }
  for (const Part& part : waterfall.parts) {
    if (part.ms < least) continue;
    const std::optional<Remedy> remedy = remedy_of(part.kind, waterfall, pace);
    if (!remedy) continue;
    causes.push_back({.name = name_of(part.kind),
                      .phrase = phrase_of(part.kind),
                      .ms = part.ms,
                      .evidence = evidence_of(part.kind, waterfall, pace),
                      .change = remedy->change,
                      .predicted_rate = {},
                      .by = remedy->by});
    if (remedy->ms_gained) {
      causes.back().predicted_rate = waterfall.rate_of(waterfall.measured_ms - *remedy->ms_gained);
    }
  }
  std::ranges::stable_sort(causes, std::greater(), &Cause::ms);
  return causes;
}

}  // namespace syncopate::experiments
