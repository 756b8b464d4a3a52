// The best ways to run a job by runs in virtual time: forms say in which order the ways are tried and which of them
// cannot win, and the runs say all else.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/predict/advise_request.h"
#include "experiments/lab/predict/way_command.h"
#include "experiments/lab/run/run_job.h"
#include "prediction/advice/search.h"

namespace syncopate::experiments {

struct SimulatedWay {
  prediction::Way way;
  Addition addition;
  std::vector<std::string> words;  // of the run
  double step = 0;                 // seconds between two steps of a worker, in the run's steady window
  double samples_per_second = 0;   // of that window
  double host_bytes = 0;           // that a host with workers needs at the least
  double staleness = 0;            // mean, in updates
  double score = 0;                // see prediction::score()

  // Whether each step uses the gradients of all workers, whole and of the newest weights.
  bool is_synchronous() const { return !way.asynchronous && addition.name.empty(); }
  prediction::Family family() const { return way.family(); }
};

// A way that the simulated cluster does not run, and why.
struct RefusedWay {
  std::string name;
  std::string why;
};

struct SimulatedSearch {
  std::vector<SimulatedWay> ways;  // those that ran, the best first
  std::vector<RefusedWay> refused;
  int beaten = 0;  // ways that cannot win, whatever overlaps
  int left = 0;    // ways that the request's events did not suffice for

  // The best synchronous one of a family; the best asynchronous one. Null if there is none.
  const SimulatedWay* synchronous(prediction::Family family) const;
  const SimulatedWay* asynchronous() const;
};

// Runs the best way of each kind first, synchronous ones before others, then what these could have besides, then all
// other ways, until as many events as the request allows were simulated, or as much was computed as takes as long: each
// unless its least score is no better than that of a way that ran. Allowed or not, and beaten or not, the first of
// allreduce, of sharded workers, of servers on hosts of their own and of those on workers' hosts run. What it returns
// is the same at every call. Fails with why a run failed, and with cancelled if it was interrupted.
Result<SimulatedSearch> simulate_ways(const AdviseRequest& request, int workers, const prediction::SearchResult& found,
                                      const JobRunner& run);

}  // namespace syncopate::experiments
