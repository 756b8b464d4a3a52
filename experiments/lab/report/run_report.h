// RunReport: the figures of one run, computed from its records. Pure.
//
// Throughput is that of the whole job: every sample whose gradient was used, divided by the time from the first
// worker's first step to the last worker's last step. Nothing is left out, neither a warm-up nor the tail of a slow
// worker. Beside it stands the steady window, which all workers share: from the moment when the last of them had
// finished its warm-up to the moment when the first of them finished its last step. Figures of a step (its length, its
// parts, bytes, staleness) cover the steps that ended within that window, if there is one, and all steps otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/server_figures.h"
#include "common/step_record.h"
#include "experiments/cluster/control/test_figures.h"
#include "experiments/cluster/faults/fault_record.h"
#include "experiments/lab/report/machine_state.h"
#include "experiments/lab/report/staleness_histogram.h"
#include "experiments/lab/report/steady_window.h"

namespace syncopate::experiments {

inline constexpr std::size_t kMostRepeatsRead = 100;  // of a finished run: the limit of --repeat

// One evaluation of a snapshot, with the time at which the snapshot was taken.
struct EvalRecord {
  double epoch = 0;               // epochs finished: 1.5 in the middle of the second
  std::int64_t step = 0;          // steps finished by the worker whose weights were evaluated
  std::int64_t samples_seen = 0;  // by all workers
  double training_seconds = 0;    // since training began
  double accuracy = 0;            // on the test set
  double loss = 0;                // mean over the test set
  TestFigures figures = {};
  std::optional<ValidationFigures> validation = {};  // where samples are held out
  // Over the batches that all workers trained since the evaluation before, each with the weights that it met; empty if
  // there were none.
  std::optional<double> train_loss = {};
  std::optional<double> train_accuracy = {};
};

// Means over the steps of one worker, in milliseconds. The seven parts sum to `step`.
struct StepSplit {
  double step = 0;
  double data = 0;
  double forward = 0;
  double backward = 0;
  double straggle = 0;  // added delay of a straggler
  double exposed_wait = 0;
  double optimizer = 0;
  double other = 0;
};

// A straggler, over its steps after the warm-up.
struct StragglerFigures {
  int worker = 0;
  double delay_ms_mean = 0;
  double delay_ms_max = 0;
  double slowdown = 1;  // (compute + delay) / compute, summed over its steps
};

// Peaks of resident memory, in bytes. Memory that processes share (arenas in shared memory, mapped files) counts in
// each.
struct MemoryFigures {
  std::int64_t worker = 0;  // the largest of all workers
  std::int64_t server = 0;  // the largest of all servers; 0 if there are none
  std::int64_t all = 0;     // sum over all workers and servers
};

// The time in which all workers trained at once, after their warm-up.
struct SteadyWindow {
  double seconds = 0;
  double samples_per_second = 0;  // used samples of the parts of steps in the window, over its length
  std::int64_t steps = 0;         // steps of all workers that ended in it
};

struct RunReport {
  std::optional<double> samples_per_second;  // of the whole job: used_samples / training_seconds; empty without a step
  double training_seconds = 0;               // from the first worker's first step to the last one's last
  std::int64_t total_steps = 0;              // of all workers, warm-up included
  std::int64_t total_samples = 0;            // samples of these steps
  // The samples that the weights have learnt from. It excludes gradients that were dropped because they were late, and
  // steps that were skipped, or undone and repeated.
  std::int64_t used_samples = 0;
  std::optional<double> goodput;       // share of the workers' time, 0 to 1 (goodput.h); empty where it is not known
  std::vector<int> lost_workers;       // ranks that were lost, and had not come back when the run ended
  std::optional<SteadyWindow> window;  // empty if the workers share none: too few steps, or none at the same time

  double step_ms_median = 0;
  double step_ms_p95 = 0;
  StepSplit split_ms;
  double communication_ms = 0;         // mean per step; hidden or exposed
  double hidden_communication_ms = 0;  // the part of it that overlapped with compute
  double codec_ms = 0;                 // mean per step; compressing and decompressing
  double copy_ms = 0;                  // mean per step; between a device and the host
  double launch_ms = 0;                // mean per step; the host's time to launch the device's work

  double bytes_out_per_step = 0;  // payload of one worker
  double bytes_in_per_step = 0;

  std::map<int, ServerFigures> servers;  // by rank; of the whole run

  MemoryFigures memory;
  std::optional<MachineLoad> machine;  // what its processors were doing; empty if it was not observed

  std::vector<StragglerFigures> stragglers;  // by rank

  double staleness_mean = 0;
  double staleness_p95 = 0;  // over steps, of the mean over shards of each step
  std::int64_t staleness_max = 0;
  std::vector<StalenessBin> staleness_bins;
  double dropped = 0;                         // fraction of all gradients that were too late for their update
  std::optional<std::int64_t> loss_scale;     // of the last step; this and the next are empty where it is not scaled
  std::optional<std::int64_t> skipped_steps;  // no replica made an update in them: scaled gradients were not finite

  // Mean over the samples of the workers' first batches; none if the run went on from a checkpoint.
  std::optional<double> first_train_loss;
  std::optional<double> final_train_loss;     // mean over the samples of the last tenth of each worker's steps
  std::optional<double> final_test_accuracy;  // none of regression, and of weights that were not evaluated
  std::optional<double> final_test_loss;
  TestFigures final_figures;
  std::int64_t test_labels = 0;  // that the figures on the test set are of; of rankings, these; 0: not known
  std::optional<ValidationFigures> final_validation;
  // When the target was first crossed, between two evaluations (target_crossing). Empty if it was not, or if there
  // was no target.
  std::optional<double> seconds_to_target;
  std::optional<std::int64_t> samples_to_target;
  std::optional<double> seconds_to_target_resolution;  // time between these two evaluations
};

// Returns the figures of a run from each process's peak, in bytes, by name: "worker 1", "server 0".
MemoryFigures memory_figures(const std::map<std::string, std::int64_t>& peaks);

struct ReportOptions {
  std::int64_t warmup_steps = 0;  // this many first steps of each worker are not in the steady window
  double target_accuracy = 0;     // for the headline figure (test_figures.h); 0: none
  // Whether training went on from a checkpoint: a target that the first evaluation has reached was reached before, one
  // cannot know when. And whether the times of evaluations count from the beginning of training all the same.
  bool is_resumed = false;
  bool knows_time = true;
};

// `workers` are all that the job asked for, with or without steps.
RunReport make_report(std::span<const WorkerSteps> workers, std::span<const EvalRecord> evals,
                      const ReportOptions& options);

// Returns the fraction of the communication that overlapped with compute, 0 to 1; empty if there was none.
std::optional<double> hidden_part(const RunReport& report);

// Returns the samples per second of each report that has them.
std::vector<double> throughputs(std::span<const RunReport> reports);

// Returns the report whose throughput is the median of `reports` (the lower one of an even number); its step split
// represents all. `reports` must not be empty.
const RunReport& middle_report(std::span<const RunReport> reports);

// The steps of each of `workers` must be in the order of their ends.
RecoveryTimes recovery_after(TimePoint fault, std::span<const WorkerSteps> workers);

struct TargetCrossing {
  double seconds = 0;  // of training
  double samples = 0;  // trained on by all workers
  // The distance between the two evaluations around the crossing; it is not known more precisely than that.
  double resolution_seconds = 0;
  double resolution_samples = 0;
};

// Returns the first crossing, interpolated linearly between the first evaluation at or above `target` (of the headline
// figure, test_figures.h) and the one before it. If the very first evaluation is at or above it, returns that
// evaluation's time, with all of it as the resolution, since nothing is known of the time before. None if no evaluation
// has reached it.
std::optional<TargetCrossing> target_crossing(std::span<const EvalRecord> evals, double target,
                                              bool is_resumed = false);

// Returns the headline of the final weights on the test set (test_figures.h); none: they were not evaluated.
std::optional<double> final_headline(const RunReport& report);

}  // namespace syncopate::experiments
