// How far a run has come, while it runs.
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

// The values of a progress line.
struct Progress {
  std::int64_t epoch = 0;   // from 0
  std::int64_t epochs = 1;  // epochs of the whole run
  std::int64_t step = 0;    // steps of the job that all workers have finished
  std::int64_t steps = 0;   // steps of the whole run; this and epochs are 0 where nobody knows beforehand
  // Means over the last two seconds.
  double samples_per_second = 0;  // sum over all workers
  double step_ms = 0;             // of one worker
  std::optional<double> loss;     // none: nothing is learnt
  // The newest evaluation, and the epoch at which it was taken.
  std::optional<double> accuracy;
  TestFigures figures = {};
  // What the same evaluation gave on samples that are held out; the line then shows it, and not the test set.
  std::optional<ValidationFigures> validation = {};
  double train_accuracy = 0;  // mean over the last two seconds
  double evaluated_epoch = 0;
  double seconds_left = 0;  // estimated from the pace of the whole run so far
  bool is_virtual = false;  // all times are those of a simulated cluster
  bool holds_out = false;   // the training's accuracy is shown, too
};

// Returns a line such as
//   "epoch 2/3  step 312/468  loss 0.1234  accuracy 0.9650 at epoch 1.5  mean 41,250 samples/s, 1.55 ms/step  ETA 12
//   s".
// Where samples are held out, the loss and the accuracy of training and of validation:
//   "... train loss 0.1234, accuracy 0.9671  validation loss 0.1240, accuracy 0.9630 at epoch 1.5  ...".
// If that is longer than `columns`, parts are shortened, then the least important ones left out first: the means, the
// accuracy, the epoch, the step. The loss and the time left stay.
std::string to_text(const Progress& progress, std::size_t columns = std::string::npos);

// Returns the parts with two blanks between them, in a line; what does not fit into 80 characters goes on in further
// lines, indented.
std::string side_by_side(const std::vector<std::string>& parts);

// ProgressTracker: turns the records of all workers into a Progress. Used by one thread.
class ProgressTracker {
 public:
  struct Job {
    int workers = 1;
    std::int64_t steps_per_epoch = 1;
    std::int64_t total_steps = 1;  // 0: nobody knows beforehand; then there are no epochs either
    std::int64_t first_step = 0;   // above 0 if the run resumes from a checkpoint
    // How progress is counted. False: by the slowest worker, where each trains an equal part. True: by the furthest
    // position in the job that any worker has reached (common/step_record.h), plus this many batches once its step is
    // done.
    bool by_position = false;
    int batches_an_update = 1;
    bool is_virtual = false;  // as in Progress
    bool learns = true;       // or there is no loss
    bool holds_out = false;   // samples, to validate on
  };

  explicit ProgressTracker(const Job& job);

  void add(int worker, const StepRecord& step);
  void add(const EvalRecord& eval) { newest_eval_ = eval; }
  // From now on only the other workers count.
  void worker_lost(int worker) { lost_[static_cast<std::size_t>(worker)] = true; }

  // The worker counts again, from where the slowest of the others is.
  void worker_joined(int worker);

  // Returns the number of completed epochs of the job.
  std::int64_t epochs_finished() const { return steps_finished() / job_.steps_per_epoch; }
  Progress progress() const;

 private:
  struct Sample {
    TimePoint end;
    Duration total;
    std::int64_t samples;
    double loss;
    double accuracy;
  };

  std::int64_t steps_finished() const;
  double seconds_left() const;

  Job job_;
  std::int64_t batches_ = 0;            // batches of the job that are done, by position
  std::vector<std::int64_t> finished_;  // finished steps, by worker
  std::vector<bool> lost_;
  std::deque<Sample> recent_;  // in order of arrival
  TimePoint first_ = TimePoint::max();
  TimePoint newest_ = TimePoint::min();
  std::optional<EvalRecord> newest_eval_;
};

// ProgressPrinter: decides which text to print for a Progress, and when. On a terminal it is one line that is
// overwritten at most ten times a second and stays when its epoch ends. Elsewhere it is one plain line per epoch, and
// one whenever ten seconds have passed without any, of 80 characters at most, without control characters.
class ProgressPrinter {
 public:
  // `columns` is the terminal's width, since a line that is overwritten must not wrap; 0 if this is not a terminal.
  explicit ProgressPrinter(int columns) : columns_(columns) {}

  // Return the text to print now, which is often empty.
  std::string update(const Progress& progress, TimePoint now);
  std::string epoch_finished(const Progress& progress, TimePoint now);
  // Returns the text that ends a line left standing, before anything else is printed.
  std::string interrupt();

 private:
  int columns_;
  bool standing_ = false;
  std::optional<TimePoint> last_;
};

}  // namespace syncopate::experiments
