// ResultsWriter: the folder that a run leaves behind (results/README.md is its schema).
//
// Steps and evaluations are appended while the run goes on, so that an end before its time keeps what was recorded;
// all else is written whole. One thread. All failures are resource exhausted, with the path and the system's reason.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/param_layout.h"
#include "common/status.h"
#include "common/step_record.h"
#include "experiments/checkpoint/safetensors.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/config/run_config.h"
#include "experiments/lab/report/append_file.h"
#include "experiments/lab/report/run_report.h"
#include "experiments/lab/report/summary_json.h"

namespace syncopate::experiments {

// Whether results can go to `directory`, as far as can be seen without making it: invalid argument where others lie
// there already.
Status check_output(const std::string& directory);

class ResultsWriter {
 public:
  // Makes `directory` (which must be empty or not there yet) with its logs/, proves that some megabytes can be written,
  // and leaves config.toml and environment.json there. Fails with invalid argument where results lie already.
  static Result<ResultsWriter> create(const RunConfig& config, const Environment& environment);

  const std::string& directory() const { return directory_; }
  std::string log_path(const std::string& process) const;  // "logs/worker-1.log" for "worker 1"
  std::string model_path() const { return directory_ + "/model.safetensors"; }

  // Training of the next repeat begins at `origin`; the first is repeat 0. Times in steps.csv count from there.
  void begin_repeat(TimePoint origin);
  // Kept in memory until a flush.
  void add(int worker, const StepRecord& step);
  void add(const EvalRecord& eval);
  // Writes what has gathered if the last time was a second or more ago.
  Status flush_if_due(TimePoint now);
  Status flush();

  // One report for each repeat, in order; may be fewer than were asked for, even none, if the run ended early.
  Status write_summary(std::span<const RunReport> reports, const RunFacts& facts);
  // Safetensors, as safetensors.h says.
  Status write_model(const ParamLayout& layout, std::span<const float> weights,
                     std::span<const WholeNumbers> whole_numbers, const std::map<std::string, std::string>& metadata);

 private:
  ResultsWriter(std::string directory, AppendFile steps, AppendFile evals)
      : directory_(std::move(directory)), steps_(std::move(steps)), evals_(std::move(evals)) {}

  std::string directory_;
  AppendFile steps_;
  AppendFile evals_;
  int repeat_ = -1;
  TimePoint origin_{};
  TimePoint last_flush_{};
};

}  // namespace syncopate::experiments
