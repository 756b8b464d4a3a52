// RunReport: what the records of one run say. Pure: records in, figures out.
//
// Throughput is that of the whole job: every sample whose gradient was used, over the time from the first worker's
// first step to the last worker's last step. Nothing is left out of it, neither a warm-up nor the tail of a slow
// worker. Beside it stands the steady window, which all workers share: from the moment when the last of them had
// finished its warm-up to the moment when the first of them finished its last step. Figures of a step (its length, its
// parts, bytes, staleness) are of the steps that ended within that window, where there is one, and of all steps
// otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/step_record.h"
#include "experiments/cluster/control/test_figures.h"
#include "experiments/lab/report/machine_state.h"
#include "experiments/lab/report/staleness_histogram.h"

namespace syncopate::experiments {

// One evaluation of a snapshot, stamped when the snapshot was taken.
struct EvalRecord {
  double epoch = 0;               // epochs finished: 1.5 in the middle of the second
  std::int64_t step = 0;          // steps finished by the worker whose weights they are
  std::int64_t samples_seen = 0;  // by all workers
  double training_seconds = 0;    // since training began
  double accuracy = 0;            // of the test set
  double loss = 0;                // mean over the test set
  TestFigures figures = {};
};

struct WorkerSteps {
  int rank = 0;
  bool lost = false;                  // ended before its time: its samples count, but it does not end the window
  std::span<const StepRecord> steps;  // in order
};

// Means over steps, of one worker, in milliseconds. The seven parts sum to `step`.
struct StepSplit {
  double step = 0;
  double data = 0;
  double forward = 0;
  double backward = 0;
  double straggle = 0;  // waits of workers that were made slow
  double exposed_wait = 0;
  double optimizer = 0;
  double other = 0;
};

// A worker that was made slow, over its steps beyond the warm-up.
struct StragglerFigures {
  int worker = 0;
  double delay_ms_mean = 0;
  double delay_ms_max = 0;
  double slowdown = 1;  // how many times its own compute each step took: (compute + delay) / compute
};

// Peaks of resident memory, in bytes. What processes share (arenas over shared memory, mapped files) counts in each.
struct MemoryFigures {
  std::int64_t worker = 0;  // of the worker that had most
  std::int64_t server = 0;  // likewise; 0 where there is none
  std::int64_t all = 0;     // of all workers and servers together
};

// The time in which all workers trained at once, beyond their warm-up.
struct SteadyWindow {
  double seconds = 0;
  double samples_per_second = 0;  // used samples of the steps that ended in it, over its length
  std::int64_t steps = 0;         // of all workers, that ended in it
};

struct RunReport {
  std::optional<double> samples_per_second;  // of the whole job: used_samples / training_seconds; empty without a step
  double training_seconds = 0;               // from the first worker's first step to the last one's last
  std::int64_t total_steps = 0;              // of all workers, with warm-up
  std::int64_t total_samples = 0;            // of these steps
  // The part of them that the weights have learnt from: not of a gradient that was dropped because it came too late,
  // nor of a step that was undone and made again.
  std::int64_t used_samples = 0;
  std::optional<SteadyWindow> window;  // empty where the workers share none: too few steps, or none at the same time

  double step_ms_median = 0;
  double step_ms_p95 = 0;
  StepSplit split_ms;
  double communication_ms = 0;         // mean of a step; hidden or exposed
  double hidden_communication_ms = 0;  // the part of it that compute covered
  double codec_ms = 0;                 // mean of a step; compressing and decompressing
  double copy_ms = 0;                  // mean of a step; between a device and the host
  double launch_ms = 0;                // mean of a step; the host's time to give a device its work

  double bytes_out_per_step = 0;  // payload, of one worker
  double bytes_in_per_step = 0;

  MemoryFigures memory;
  std::optional<MachineLoad> machine;  // what its processors were busy with; empty where nobody has looked

  std::vector<StragglerFigures> stragglers;  // by rank

  double staleness_mean = 0;
  double staleness_p95 = 0;  // over steps, of a step's mean over shards
  std::int64_t staleness_max = 0;
  std::vector<StalenessBin> staleness_bins;
  double dropped = 0;  // part of all gradients that came too late for their update

  std::optional<double> final_train_loss;  // mean over the workers' last batches
  std::optional<double> final_test_accuracy;
  std::optional<double> final_test_loss;
  TestFigures final_figures;
  // When the target was first crossed, between two evaluations (evaluation/target_crossing.h); empty where it was not,
  // or none was asked for.
  std::optional<double> seconds_to_target;
  std::optional<std::int64_t> samples_to_target;
  std::optional<double> seconds_to_target_resolution;  // how far these two evaluations lie apart
};

// Of a run whose processes had so much memory at most, in bytes, by name: "worker 1", "server 0".
MemoryFigures memory_figures(const std::map<std::string, std::int64_t>& peaks);

struct ReportOptions {
  std::int64_t warmup_steps = 0;  // so many first steps of each worker are not in the steady window
  double target_accuracy = 0;     // of the headline figure (test_figures.h); 0: none
};

RunReport make_report(std::span<const WorkerSteps> workers, std::span<const EvalRecord> evals,
                      const ReportOptions& options);

// The part of the communication that compute covered: 0 to 1; empty where there was none.
std::optional<double> hidden_part(const RunReport& report);

// Samples a second of each report that has them.
std::vector<double> throughputs(std::span<const RunReport> reports);

// The report whose throughput is the median of `reports` (the lower one of an even number), as the one whose step
// split stands for all. `reports` is not empty.
const RunReport& middle_report(std::span<const RunReport> reports);

}  // namespace syncopate::experiments
