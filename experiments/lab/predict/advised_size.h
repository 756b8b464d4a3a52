// What advice says of one number of workers, as text, values and a page have it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/lab/predict/advise_request.h"
#include "experiments/lab/predict/simulated_search.h"
#include "experiments/lab/report/crossover.h"
#include "experiments/lab/run/run_job.h"

namespace syncopate::experiments {

struct AdvisedSize {
  int workers = 0;
  SimulatedSearch simulated;  // nothing for one worker
  std::vector<std::string> sentences;
  std::string lead;  // see lead_in(); empty for one worker
};

// Searches each size that is asked about, in the order in which they were given. Fails where predict_step() and
// simulate_ways() do.
Result<std::vector<AdvisedSize>> advised_sizes(const AdviseRequest& request, const JobRunner& run);

// Returns the places in `ways` of the first of each kind, at most as many as a person reads.
std::vector<std::size_t> best_of_each_kind(const std::vector<SimulatedWay>& ways);

// Returns how many times as good the best synchronous servers are as the best synchronous allreduce; none where one of
// them has not run.
std::optional<double> servers_over_allreduce(const AdvisedSize& size);

// Returns between which sizes the mode that is ahead changes, as crossovers_of() has it of rows. Pure.
std::vector<Crossover> crossovers_of(const std::vector<AdvisedSize>& sizes);

// Returns "2.3" or "137": where a crossover lies, no more exactly than a line between two sizes says.
std::string place_of(const Crossover& one);

}  // namespace syncopate::experiments
