// CellPool: carries out the simulated runs of a comparison in processes of their own, several at once, in the order in
// which they will be asked for. What a run comes to is read from its files. Used by one thread.
#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/cluster/coordinator/interrupts.h"
#include "experiments/cluster/launcher/launcher.h"
#include "experiments/lab/run/run_job.h"

namespace syncopate::experiments {

class CellPool {
 public:
  // Runs up to `at_once` processes of `program`. `interrupts` must outlive it.
  CellPool(std::string program, std::size_t at_once, Interrupts& interrupts)
      : program_(std::move(program)), at_once_(at_once), interrupts_(interrupts) {}
  ~CellPool();  // ends those that are running

  // These runs will be asked for, in this order. Each has an output folder of its own, which is free, below `folder`,
  // where the pool keeps files of its own meanwhile. Begins the first ones.
  Status expect(const std::vector<ResolvedRun>& runs, const std::string& folder);
  bool expects(const ResolvedRun& run) const { return ended_with_.contains(run.output); }

  // Returns what an expected run has come to, once its process has ended; others go on meanwhile. Interrupted if a
  // signal arrives first.
  JobResult run(const ResolvedRun& run);

 private:
  struct Cell {
    std::string output;
    StartedChild process;
  };

  Status begin_more();
  // Waits until a process has ended, and takes its exit code. Returns false if a signal has arrived first.
  bool wait_for_one();

  const std::string program_;
  const std::size_t at_once_;
  Interrupts& interrupts_;
  std::string folder_;
  std::deque<std::string> waiting_;  // outputs of cells that have not begun
  std::list<Cell> running_;
  std::map<std::string, std::optional<ExitCode>> ended_with_;  // by output of each that is expected
};

}  // namespace syncopate::experiments
