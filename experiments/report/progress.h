// How far a run is, while it runs.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/step_record.h"
#include "experiments/report/run_report.h"

namespace syncopate::experiments {

// What a progress line shows.
struct Progress {
  std::int64_t epoch = 0;   // from 0
  std::int64_t epochs = 1;  // of the whole run
  std::int64_t step = 0;    // steps finished by the slowest worker
  std::int64_t steps = 0;   // of the whole run
  double samples_per_second = 0;
  double step_ms = 0;
  double loss = 0;
  std::optional<double> accuracy;  // of the newest evaluation; as are these
  TestFigures figures = {};
  double seconds_left = 0;
};

// "epoch 2/3  step 312/468  41,250 samples/s  1.55 ms/step  loss 0.1234  accuracy 0.9650  ETA 12 s"
std::string to_text(const Progress& progress);

// Turns the records of all workers into a Progress. Rates are those of the last two seconds. One thread.
class ProgressTracker {
 public:
  ProgressTracker(int workers, std::int64_t steps_per_epoch, std::int64_t total_steps);

  void add(int worker, const StepRecord& step);
  void add(const EvalRecord& eval) {
    accuracy_ = eval.accuracy;
    figures_ = eval.figures;
  }
  // The others are what counts from here on.
  void worker_lost(int worker) { lost_[static_cast<std::size_t>(worker)] = true; }

  // It counts again, from where the slowest of the others is.
  void worker_joined(int worker);

  // Epochs that all workers have finished.
  std::int64_t epochs_finished() const { return steps_finished() / steps_per_epoch_; }
  Progress progress() const;

 private:
  struct Sample {
    TimePoint end;
    Duration total;
    std::int64_t samples;
    double loss;
  };

  std::int64_t steps_finished() const;

  std::int64_t steps_per_epoch_;
  std::int64_t total_steps_;
  std::vector<std::int64_t> finished_;  // steps, by worker
  std::vector<bool> lost_;
  std::deque<Sample> recent_;  // by time of arrival
  TimePoint newest_ = TimePoint::min();
  std::optional<double> accuracy_;
  TestFigures figures_;
};

// Decides what to print of it, and when. On a terminal, one line that is written over, at most ten times a second, and
// stays when its epoch ends; elsewhere one plain line an epoch, without control characters.
class ProgressPrinter {
 public:
  // `columns`: the terminal's width, for a line that is written over must not wrap; 0 if this is no terminal.
  explicit ProgressPrinter(int columns) : columns_(columns) {}

  // The text to print now, often empty.
  std::string update(const Progress& progress, TimePoint now);
  std::string epoch_finished(const Progress& progress);
  // Ends a line that was left standing, before anything else is printed.
  std::string interrupt();

 private:
  int columns_;
  bool standing_ = false;
  std::optional<TimePoint> last_;
};

}  // namespace syncopate::experiments
