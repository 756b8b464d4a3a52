// What `predict --measured` reads: the throughput of one job at several sizes, from a table of a person's own or from
// the folders of runs, comparisons and studies.
//
// The model of a program of the person's own is what --profile says; the rest is as in other runs.
//
// A table is a CSV whose first line names its columns: `workers`, and `samples_per_second` of the whole job or
// `step_ms`; besides, if they are there, `mode` (allreduce, allreduce:ring, allreduce:tree, ps, ...; a ring unless
// given), `servers` (a number of hosts of their own, or `each` for one on each worker's host) and `batch_size` (of a
// worker). Rows that differ in nothing of that are repeats, of which the median counts.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/lab/predict/scaled_job.h"
#include "prediction/step_prediction.h"

namespace syncopate::experiments {

struct MeasuredRun {
  int workers = 0;
  prediction::ExchangePlan plan;  // of no meaning where one worker is alone
  double samples_per_second = 0;  // of the whole job

  // Whether it exchanges nothing: with servers, one worker does.
  bool is_alone() const { return workers == 1 && plan.exchange != prediction::Exchange::kServers; }
};

struct MeasuredRuns {
  std::vector<MeasuredRun> runs;      // each way and size once
  JobDefaults job;                    // what the files say of the job
  std::vector<std::string> left_out;  // a sentence for each run that no form describes, or that did not end
  std::vector<std::string> notes;     // sentences
};

// Reads files and folders, with commas between them. `given` are the options beside: --shape is the nominal link of
// runs that know none, --servers, --sharding and --bucket-bytes are those of rows of a table. Fails with invalid
// argument, naming file and line, for what cannot be read, is of several jobs, or has no step that counts.
Result<MeasuredRuns> read_measured_runs(const std::string& paths, const GivenOptions& given);

}  // namespace syncopate::experiments
