// RowRunner: runs the jobs of a comparison one after the other, unless they were completed before. Before each job it
// prints one line that says which one it is and when all will be done, and after it one line with the result, on a
// terminal and in a file alike.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "experiments/config/resolved_run.h"
#include "experiments/lab/compare/kept_runs.h"
#include "experiments/lab/run/console.h"
#include "experiments/lab/run/run_job.h"

namespace syncopate::experiments {

// TimeLeft: estimates how long the rest of a comparison will take, from how long its runs took so far. Pure.
class TimeLeft {
 public:
  // `runs` has, for each row, how many runs are ahead.
  explicit TimeLeft(std::vector<std::size_t> runs) : ahead_(std::move(runs)), took_(ahead_.size()) {}

  // A run of `row` has ended, after this many seconds.
  void ran(std::size_t row, double seconds);
  // A run of `row` need not be made.
  void skip(std::size_t row);
  // `row` has no runs ahead any more.
  void leave_out(std::size_t row) { ahead_[row] = 0; }

  // Returns the estimate. Each row's runs take the mean of those it has had; a row without any takes the mean of all.
  // Empty before the first run.
  std::optional<double> seconds() const;

 private:
  struct Took {
    double seconds = 0;
    std::size_t runs = 0;
  };

  std::vector<std::size_t> ahead_;  // by row
  std::vector<Took> took_;          // by row
};

// Returns "ps-bounded-4-batch-size-32" for "ps:bounded:4 batch-size=32". Any label of a comparison becomes one valid
// file name.
std::string folder_of(std::string label);

class RowRunner {
 public:
  // `runs_ahead` has, for each row, how often it will run. The other arguments are kept by reference.
  RowRunner(std::vector<std::size_t> runs_ahead, KeptRuns& kept, const JobRunner& run_job, const Clock& clock,
            Console& console)
      : kept_(kept), run_job_(run_job), clock_(clock), console_(console), left_(std::move(runs_ahead)) {}

  // Runs `config` once, or takes what it has come to before. `what` names the run of the comparison: "round 2/5, run
  // 3/8: ps:async".
  JobResult run(std::size_t row, const std::string& what, ResolvedRun config);
  // Returns how many runs were completed before.
  std::size_t kept() const { return kept_runs_; }
  // Says that all runs will be over by then; none: nothing is known.
  void ends_by(std::optional<TimePoint> end) { end_ = end; }
  // Returns how many it has carried out itself.
  std::size_t ran() const { return ran_; }
  // Says that the row will not run any more.
  void leave_out(std::size_t row) { left_.leave_out(row); }

 private:
  KeptRuns& kept_;
  const JobRunner& run_job_;
  const Clock& clock_;
  Console& console_;
  TimeLeft left_;
  std::optional<TimePoint> end_;
  std::size_t kept_runs_ = 0;
  std::size_t ran_ = 0;
};

}  // namespace syncopate::experiments
