// Resumption: the checkpoint from which a run goes on.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/status.h"
#include "experiments/checkpoint/carry_over.h"
#include "experiments/checkpoint/checkpoint_key.h"
#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/summary_json.h"
#include "experiments/lab/run/console.h"
#include "experiments/lab/run/recorder.h"

namespace syncopate::experiments {

// What a run that writes checkpoints, or resumes from one, needs besides its options.
struct Resumption {
  std::optional<CheckpointKey> key = {};  // from --checkpoint-key-file
  std::string folder = {};                // of the checkpoint that its processes read; empty: it begins anew
  std::string manifest_digest = {};       // of that checkpoint
  // Set if that is of a run in another mode or with other workers, until take_over() has made one of this run's of it.
  std::optional<CarryOver> carry_over = {};
};

// Returns the facts of a run's checkpoints (run_facts.h), with what own data holds.
std::map<std::string, std::string> facts_of(const ResolvedRun& config, const JobFacts& job);

// Finds the checkpoint to resume from, if any, sets in `job` and `facts` where the run goes on, and says which ones
// could not be used. Reads the key, which stays in this process. Fails as newest_checkpoint(), plan_carry_over() and
// check_steps_left() do,
// and with invalid argument for a key that cannot be used.
Result<Resumption> find_resumed(const ResolvedRun& config, JobFacts& job, RunFacts& facts, Console& console);

// Makes the checkpoint that the run's processes can go on from, in the results' folder, if it is of another kind of
// run. Fails as carry_over() does.
Status take_over(const ResolvedRun& config, const JobFacts& job, Resumption& resumption);

}  // namespace syncopate::experiments
