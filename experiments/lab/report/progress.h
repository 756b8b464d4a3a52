// How far a run is, while it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/step_record.h"
#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

// What a progress line shows.
struct Progress {
  std::int64_t epoch = 0;   // from 0
  std::int64_t epochs = 1;  // of the whole run
  std::int64_t step = 0;    // of the job: finished by all
  std::int64_t steps = 0;   // of the whole run
  // Means over the last two seconds.
  double samples_per_second = 0;  // of all workers together
  double step_ms = 0;             // of one worker
  double loss = 0;
  // The newest evaluation, and of when it is.
  std::optional<double> accuracy;
  TestFigures figures = {};
  double evaluated_epoch = 0;
  double seconds_left = 0;  // at the pace of the whole run so far
};

// "epoch 2/3  step 312/468  loss 0.1234  accuracy 0.9650 at epoch 1.5  mean 41,250 samples/s, 1.55 ms/step  ETA 12 s".
// Where that is longer than `columns`, what matters least is left out first: the means, the accuracy, the epoch, the
// step; loss and time left stay.
std::string to_text(const Progress& progress, std::size_t columns = std::string::npos);

// Turns the records of all workers into a Progress. One thread.
class ProgressTracker {
 public:
  struct Job {
    int workers = 1;
    std::int64_t steps_per_epoch = 1;
    std::int64_t total_steps = 1;
    std::int64_t first_step = 0;  // of a run that goes on from a checkpoint
    // How far it is: as far as the slowest worker, where each trains an equal part; else as far as the furthest
    // position in the job that any worker has come to (common/step_record.h), and so many batches further once its step
    // is done.
    bool by_position = false;
    int batches_an_update = 1;
  };

  explicit ProgressTracker(const Job& job);

  void add(int worker, const StepRecord& step);
  void add(const EvalRecord& eval) { newest_eval_ = eval; }
  // The others are what counts from here on.
  void worker_lost(int worker) { lost_[static_cast<std::size_t>(worker)] = true; }

  // It counts again, from where the slowest of the others is.
  void worker_joined(int worker);

  // Epochs of the job that are done.
  std::int64_t epochs_finished() const { return steps_finished() / job_.steps_per_epoch; }
  Progress progress() const;

 private:
  struct Sample {
    TimePoint end;
    Duration total;
    std::int64_t samples;
    double loss;
  };

  std::int64_t steps_finished() const;
  double seconds_left() const;

  Job job_;
  std::int64_t batches_ = 0;            // of the job that are done, by position
  std::vector<std::int64_t> finished_;  // steps, by worker
  std::vector<bool> lost_;
  std::deque<Sample> recent_;  // by time of arrival
  TimePoint first_ = TimePoint::max();
  TimePoint newest_ = TimePoint::min();
  std::optional<EvalRecord> newest_eval_;
};

// Decides what to print of it, and when. On a terminal, one line that is written over, at most ten times a second, and
// stays when its epoch ends; elsewhere, without control characters, one plain line an epoch, and one whenever ten
// seconds have passed without any.
class ProgressPrinter {
 public:
  // `columns`: the terminal's width, for a line that is written over must not wrap; 0 if this is no terminal.
  explicit ProgressPrinter(int columns) : columns_(columns) {}

  // The text to print now, often empty.
  std::string update(const Progress& progress, TimePoint now);
  std::string epoch_finished(const Progress& progress, TimePoint now);
  // Ends a line that was left standing, before anything else is printed.
  std::string interrupt();

 private:
  int columns_;
  bool standing_ = false;
  std::optional<TimePoint> last_;
};

}  // namespace syncopate::experiments
