// Waterfall: where the time of a run's mean step went, from an ideal one to the one that was measured. Pure.
//
// The ideal step is what the fastest worker takes by itself: the least median, over workers, of forward and backward
// without delays, compression and time without a core, and of the optimizer where that is the worker's own. If all were
// as fast and nobody waited, the job would have that rate times its workers. Stages of a pipeline have different work:
// theirs is the mean over workers, as if all had the same; and what they would wait for each other if messages took no
// time, by their schedule, is the bubble.
//
// The measured step is the mean over steps of the steady window (steady_window.h). Each part is a mean over the same
// steps, and the parts add up to the difference:
//
//   ideal + sum of parts = measured
//
// Rates are those of the workers that trained: workers x batch / step, where a worker that was lost within the window
// counts with its part of it, and the batch is the mean over the steps' samples.
//
// Waits are divided in two: until the last worker that the rule waits for had its gradients (late_workers.h), which
// goes to what had made that worker late; and the rest, which is the exchange's (exchange_parts.h).
#pragma once

#include <optional>
#include <vector>

#include "experiments/lab/why/exchange_parts.h"
#include "experiments/lab/why/recorded_steps.h"
#include "experiments/lab/why/run_pace.h"

namespace syncopate::experiments {

enum class PartKind {
  kData,       // waiting for batches, and for workers that did
  kStraggler,  // workers that are slow in every step, or made slow where most are not, and waiting for them
  kImbalance,  // steps that take any other worker longer than the fastest one's median, and waiting for it
  kDelays,     // what --straggler adds to the steps of workers that are not slow: they stand for computing
  kCores,      // threads that were ready and had no core, and waiting for them
  kCodec,
  kHotShard,    // one server has more bytes than others
  kSlowServer,  // one server answers later than its bytes explain
  kBubble,      // of a pipeline
  kMessages,    // of its stages to each other
  kLink,        // the workers' own links
  kIncast,      // the servers' links, beyond what the workers' need
  kServers,     // what servers do with what they receive
  kDelay,       // of the messages that follow each other
  kExchange,    // other waits: what they were for is not recorded
  kCopies,      // of gradients and weights between a device and its host, beside the exchange or in turns with it
  kOptimizer,
  kDropped,   // gradients that came too late and were not used
  kLaunches,  // a device had nothing to do while its host gave it the next step
  kIdle,      // a device had nothing to do while its host did something else
  kOther,
};
// In the order in which they are shown.
inline constexpr PartKind kPartKinds[] = {
    PartKind::kData,       PartKind::kStraggler, PartKind::kImbalance, PartKind::kDelays,   PartKind::kCores,
    PartKind::kBubble,     PartKind::kMessages,  PartKind::kLink,      PartKind::kIncast,   PartKind::kHotShard,
    PartKind::kSlowServer, PartKind::kServers,   PartKind::kDelay,     PartKind::kExchange, PartKind::kCopies,
    PartKind::kCodec,      PartKind::kOptimizer, PartKind::kDropped,   PartKind::kLaunches, PartKind::kIdle,
    PartKind::kOther};

// "data", "a straggler", "the link": as tables and JSON have them.
const char* name_of(PartKind kind);

// Steps between meetings of workers that do not meet in each.
inline constexpr std::int64_t kSeldom = 8;

struct Part {
  PartKind kind = PartKind::kOther;
  double ms = 0;  // of the mean step; kImbalance and kOther may be below 0
};

// One worker's part in it; means over its steps.
struct WorkerPace {
  int worker = 0;
  std::int64_t steps = 0;    // in the window
  double compute_ms = 0;     // the median that the ideal step is chosen from, without its optimizer
  double optimizer_ms = 0;   // median
  double delay_ms = 0;       // by --straggler
  bool is_slow = false;      // its median, or its delay, is far above that of most workers
  bool varies = false;       // some of its steps compute much longer than others
  double costs_ms = 0;       // of the mean step of all: its own delay and slowness, and the waits of others for it
  double last_of_steps = 0;  // share of the window's waits for a worker that were for it, by time
};

// Where a device computes: means of a step, of all workers.
struct DeviceFigures {
  // By the device's clock.
  double forward_ms = 0;
  double backward_ms = 0;
  double optimizer_ms = 0;
  double launch_ms = 0;  // that the host took to give it forward and backward
  double copy_ms = 0;    // in which copies between it and the host were under way
};

struct Waterfall {
  double ideal_ms = 0;
  double measured_ms = 0;
  int fastest = 0;          // the worker whose rate is the ideal one
  double workers = 1;       // that trained, in the mean over the window
  double batch_size = 1;    // of a worker: samples, in the mean over its steps
  std::int64_t steps = 0;   // that the means are over
  bool has_window = false;  // false: all steps, since the workers share no steady window
  bool core_waits_recorded = false;
  std::vector<Part> parts;  // each kind once, in the order of kPartKinds
  std::vector<WorkerPace> of_workers;
  DeviceFigures device;                          // zeros where processors compute
  ExchangeParts exchange;                        // evidence for the parts of the exchange
  double uneven_waits_ms = 0;                    // of kImbalance: waits for workers
  std::optional<double> uneven_waits_seldom_ms;  // what would be left of them if workers met every kSeldom steps
  double exchange_ms = 0;                        // all waits that were not for workers, cores or the bubble
  double communication_ms = 0;                   // mean time in which an exchange was under way

  double part(PartKind kind) const;
  double ideal_rate() const { return rate_of(ideal_ms); }
  double measured_rate() const { return rate_of(measured_ms); }
  // Samples a second of the job if its mean step took that long.
  double rate_of(double step_ms) const { return step_ms > 0 ? workers * batch_size * 1e3 / step_ms : 0; }
};

// Returns by stage, of a pipeline, what its workers compute in the mean.
std::vector<double> stages_ms(const std::vector<WorkerPace>& of_workers, const PacedPipeline& pipeline);
// Returns what these stages wait for each other in a step, in the mean, if messages take no time: a third of what a
// stage computes is forward, another makes the gradients of weights, and it is divided alike among microbatches, and
// chunks.
double bubble_ms(const std::vector<WorkerPace>& of_workers, const PacedPipeline& pipeline);
// The same with messages, where it is known what these take.
double waits_of_stages_ms(const std::vector<WorkerPace>& of_workers, const PacedPipeline& pipeline);

// Returns none for a run without a step.
std::optional<Waterfall> make_waterfall(const RecordedSteps& recorded, const RunPace& pace);

}  // namespace syncopate::experiments
