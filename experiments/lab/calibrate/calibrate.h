// `run_experiment calibrate`: measures what a simulated cluster has to know of this machine, or of the link between two
// hosts, and writes it as a file that --cluster=simulated:FILE reads.
#pragma once

#include <string>

#include "common/status.h"
#include "experiments/config/run_request.h"
#include "experiments/lab/run/run_job.h"

namespace syncopate::experiments {

// Measures, one after the other: the model's step, which goes to a profile beside the file; updates by every optimizer,
// sums and codecs; and the wires of this machine, or, if the request names two hosts, that between them, by a short
// run. Writes config.output, which must not be there, as its profile must not. Returns what a person is to see. `note`
// is told what is being measured.
Result<std::string> calibrate(const RunRequest& request, const Resolver& resolve, const JobRunner& run,
                              const std::function<void(const std::string&)>& note);

}  // namespace syncopate::experiments
