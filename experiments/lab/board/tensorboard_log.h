// TensorBoardLog: writes a run's curves and histograms into event files that TensorBoard opens, while the run goes on.
//
// As Keras does it, each part of the data has a folder of its own below one folder, so that TensorBoard draws their
// curves of a name in one picture: train/, test/ and, where samples are held out, validation/. All curves go over the
// steps of the job. docs/watching.md says what there is.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/os/append_file.h"
#include "experiments/lab/board/curve_points.h"
#include "experiments/lab/board/event_record.h"
#include "experiments/lab/board/run_watcher.h"

namespace syncopate::experiments {

class TensorBoardLog final : public RunWatcher {
 public:
  struct Job {
    std::string folder;                  // that gets train/, test/ and validation/
    std::function<double()> wall_clock;  // seconds since 1970; virtual time counts from when training begins by it
    std::string host;                    // for the names of the files
    std::string text;                    // what runs, as Markdown
    int workers = 1;
    std::int64_t total_steps = 1;
    std::int64_t first_step = 0;
    bool learns = true;          // or there are no losses
    bool holds_out = false;      // there is a validation set
    bool has_staleness = false;  // gradients or weights may be stale
  };

  // Creates folders and files. Fails with resource exhausted, the path and the system's reason, as all other methods
  // do.
  static Result<TensorBoardLog> create(const Job& job);

  void begin(TimePoint origin) override;
  void add(int worker, const StepRecord& step) override;
  void add(const EvalRecord& eval) override;
  void worker_lost(int) override {}
  void worker_joined(int) override {}
  void fault_injected() override {}
  void not_finite(std::int64_t step, const std::string& line) override;
  // Writes what has been added within a second or so.
  Status tick(TimePoint now, TimePoint all_before) override;
  Status end() override;

 private:
  explicit TensorBoardLog(const Job& job) : job_(job), curves_(job.workers, job.total_steps, job.first_step) {}

  void draw_steps(TimePoint before);
  void draw(const CurvePoint& point);
  void draw_histograms();
  double wall_time(TimePoint time) const { return wall_begin_ + seconds(time - origin_); }
  Status flush();

  Job job_;
  CurvePoints curves_;
  TimePoint origin_{};
  double wall_begin_ = 0;  // when training began
  TimePoint last_flush_{};
  std::vector<StepRecord> waiting_;  // until those of all workers have come
  CurvePoint last_point_;
  int points_since_histograms_ = 0;
  std::vector<double> staleness_, step_ms_;  // of the steps since the last histograms
  std::optional<AppendFile> train_, test_, validation_;
};

}  // namespace syncopate::experiments
