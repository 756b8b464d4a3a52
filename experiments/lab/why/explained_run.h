// ExplainedRun: a finished run with its waterfall and causes, from the folder of its results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/summary_reading.h"
#include "experiments/lab/why/causes.h"
#include "experiments/lab/why/device_least.h"
#include "experiments/lab/why/recorded_steps.h"
#include "experiments/lab/why/run_pace.h"
#include "experiments/lab/why/waterfall.h"

namespace syncopate::experiments {

struct ExplainedRun {
  std::string folder;
  std::string outcome;     // "completed", or what ended it
  std::size_t repeat = 0;  // the one that is explained, of median throughput
  std::size_t repeats = 1;
  RunPace pace;
  Waterfall waterfall;
  std::vector<Cause> causes;
  // Samples a second by the closed form (run/run_prediction.h), with this run's ideal step as its computing; empty
  // where there is no form for the run.
  std::optional<double> predicted_rate;
  // What only a run on GPUs has.
  std::string device;                // the chief's, as its driver reports it; empty: not known
  std::optional<DeviceLeast> least;  // where its peak rates are known
  bool updates_on_device = false;    // and not in the host or on servers
  bool may_capture_steps = false;    // as one CUDA graph
  std::optional<double> job_rate;    // of the whole job, as its summary has it
  std::int64_t first_step = 0;       // of the record: above 0 where a run goes on from a checkpoint
  // What the summary counts of all workers, and what steps.csv has of that.
  std::int64_t steps_made = 0, steps_recorded = 0;
};

// What the folder of a finished run holds that it is explained by.
struct RecordedRun {
  std::string folder;
  ResolvedRun config;
  RunSummary summary;
  std::size_t repeat = 0;  // the one of median throughput
  RecordedSteps steps;     // of that repeat
};

// Reads config.toml, summary.json and steps.csv. Fails as explain_run() does.
Result<RecordedRun> read_recorded_run(const std::string& folder);

// A run on GPUs is held against the peak rates of `device`; null: of the one of the table whose name its driver
// reports. Pure. Fails with data loss, naming the file, if there is nothing to explain.
Result<ExplainedRun> explain(const RecordedRun& recorded, const prediction::DeviceRates* device = nullptr);

// Reads config.toml, summary.json and steps.csv. The files are not trusted. Fails with invalid argument if `folder` is
// not one of a finished run, and with not found or data loss, naming the file, if one of them is missing or malformed.
Result<ExplainedRun> explain_run(const std::string& folder, const prediction::DeviceRates* device = nullptr);

// Returns two sentences for people: how much of the ideal rate the run reaches, and what costs most; then, if anything
// does, what to change first. One paragraph, without a line feed at its end.
std::string paragraph_of(const ExplainedRun& run);

}  // namespace syncopate::experiments
