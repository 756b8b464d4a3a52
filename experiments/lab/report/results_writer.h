// ResultsWriter: writes the folder of a run's results (results/README.md is its schema).
//
// Steps and evaluations are appended during the run, so that a run that ends early keeps what was recorded. All other
// files are written completely or not at all. Used by one thread. Every failure is resource exhausted, with the path
// and the system's reason.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/os/append_file.h"
#include "common/param_layout.h"
#include "common/status.h"
#include "common/step_record.h"
#include "experiments/checkpoint/safetensors.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/results_folder.h"
#include "experiments/lab/report/run_report.h"
#include "experiments/lab/report/space_reserve.h"
#include "experiments/lab/report/summary_json.h"

namespace syncopate::experiments {

std::string steps_csv_header();
// Returns one row. `repeat` counts from 0; end_s counts from `origin`, when this repeat's training began. A step that
// learns nothing has neither loss nor accuracy.
std::string steps_csv_row(int repeat, int worker, TimePoint origin, const StepRecord& step, bool learns = true);

// Checks whether results can go to config.output, as far as is possible without creating it. Fails with invalid
// argument if it already has results; those that a run of --resume=auto goes on from may stay.
Status check_output(const ResolvedRun& config);

class ResultsWriter {
 public:
  // Takes config.output (which check_output must accept) for this object alone, with its logs/, checks that some
  // megabytes can be written, and writes config.toml and environment.json. Fails with invalid argument if it already
  // has results, or somebody else writes there.
  static Result<ResultsWriter> create(const ResolvedRun& config, const Environment& environment);

  const std::string& directory() const { return directory_; }
  std::string log_path(const std::string& process) const;  // "logs/worker-1.log" for "worker 1"
  std::string model_path() const { return directory_ + "/model.safetensors"; }

  // Training of the next repeat begins at `origin`; the first is repeat 0. Times in steps.csv count from there.
  void begin_repeat(TimePoint origin);
  // Both keep the record in memory until a flush.
  void add(int worker, const StepRecord& step);
  void add(const EvalRecord& eval);
  // Flushes if the last flush was a second or more ago.
  Status flush_if_due(TimePoint now);
  Status flush();

  // Writes one report for each repeat, in order. There may be fewer than were asked for, or none, if the run ended
  // early. It is written on a full disk, too, with the space that was kept for it; the failure is then that of the
  // steps.
  Status write_summary(std::span<const RunReport> reports, const RunFacts& facts);
  // Writes the model in the format of safetensors.h.
  Status write_model(const ParamLayout& layout, std::span<const float> weights,
                     std::span<const WholeNumbers> whole_numbers, const std::map<std::string, std::string>& metadata);

 private:
  ResultsWriter(std::optional<ResultsFolder> folder, SpaceReserve reserve, std::string directory, bool learns,
                AppendFile steps, AppendFile evals)
      : folder_(std::move(folder)),
        reserve_(std::move(reserve)),
        directory_(std::move(directory)),
        learns_(learns),
        steps_(std::move(steps)),
        evals_(std::move(evals)) {}

  std::optional<ResultsFolder> folder_;  // none: its owner is the run of --resume=auto
  SpaceReserve reserve_;
  std::string directory_;
  bool learns_ = true;
  AppendFile steps_;
  AppendFile evals_;
  int repeat_ = -1;
  TimePoint origin_{};
  TimePoint last_flush_{};
};

}  // namespace syncopate::experiments
